// Makes small wrong changes in the SQL and the transactions of a copy of the product, one at a time. Each must make a test fail.
// Mutation testing (stryker.config.json) does the same for pure code, which needs no database.

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { startScript } from "../support/program.ts";
import { SABOTAGES } from "./sabotages.ts";
import { IS_LONG_RUN, TIME_LIMIT } from "./sweep.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const { url } = inject("postgres");

const LEFT_OUT = new Set(["node_modules", ".git", "dist", "data"]);

const copies = await mkdtemp(path.join(tmpdir(), "usage-export-sabotages-"));
afterAll(() => rm(copies, { recursive: true }));
/** Copies of the product in which nothing is planted now. */
const unharmed: string[] = [];

async function unharmedCopy(): Promise<string> {
  const free = unharmed.pop();
  if (free !== undefined) return free;
  const folder = await mkdtemp(path.join(copies, "copy-"));
  await cp(ROOT, folder, { recursive: true, filter: (source) => !LEFT_OUT.has(path.basename(source)) });
  await symlink(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
  return folder;
}

/** The output of Vitest for these tests of a copy, on the database server of this run. */
async function runTests(folder: string, files: readonly string[], names: readonly string[]) {
  const project = ["--config", "test/vitest.config.ts", "--project", "whole"];
  const args = ["run", ...project, ...files, "-t", names.map(RegExp.escape).join("|")];
  // The program is not built: these tests start none.
  const env = { TEST_ENGINE: "url", TEST_DATABASE_URL: url, TEST_PROGRAM: "src/main.ts", CI: "true" };
  await using vitest = startScript(path.join(ROOT, "node_modules/vitest/vitest.mjs"), args, { cwd: folder, env });
  return await vitest.ended;
}

/** Errors of a program that is broken, not wrong: the test failed before it reached what it checks. */
const BROKEN = /SyntaxError|ReferenceError|TypeError|syntax error|does not exist|timed out|No test files found/;

/** Without a wrong change the tests must pass. In CI the suite has shown that, as it runs on the same sources. */
async function passUnharmed(): Promise<void> {
  const files = new Set(SABOTAGES.map(({ noticedBy: [file] }) => file));
  const names = SABOTAGES.map(({ noticedBy: [, name] }) => name);
  const folder = await unharmedCopy();
  const before = await runTests(folder, [...files], names);
  unharmed.push(folder);
  expect(before.status, before.stdout).toBe(0);
}
if (IS_LONG_RUN) beforeAll(passUnharmed, TIME_LIMIT.timeout);

test.concurrent.each(SABOTAGES)("$name: noticed", TIME_LIMIT, async ({ file, replace, by, noticedBy }) => {
  const folder = await unharmedCopy();
  const planted = path.join(folder, file);
  const text = await readFile(planted, "utf8");
  await using restored = new AsyncDisposableStack();
  restored.defer(async () => {
    await writeFile(planted, text);
    unharmed.push(folder);
  });
  await writeFile(
    planted,
    text.replace(replace, () => by),
  );
  const { status, stdout, stderr } = await runTests(folder, [noticedBy[0]], [noticedBy[1]]);
  const output = `${stdout}${stderr}`;
  expect(status, output).toBe(1);
  // A copy that cannot run any test fails, too.
  expect(stderr, output).toMatch(new RegExp(`FAIL .* > .*${RegExp.escape(noticedBy[1])}`));
  expect(stderr, output).not.toMatch(BROKEN);
});
