// Makes small wrong changes in the SQL and the transactions of a copy of the product, one at a time. A test must fail of each. Mutation
// testing (stryker.config.json) does the same for pure code, where it needs no database.

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { startScript } from "../support/program.ts";
import { SABOTAGES } from "./sabotages.ts";
import { LIMIT } from "./sweep.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const { url } = inject("postgres");

const LEFT_OUT = new Set(["node_modules", ".git", "dist", "data"]);
/** Copies of the product in which nothing is planted now: as many as tests run at once, which mostly wait for a process and a database. */
const unharmed = await Promise.all([copyProduct(), copyProduct()]);

async function copyProduct(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-sabotage-"));
  afterAll(() => rm(folder, { recursive: true }));
  await cp(ROOT, folder, { recursive: true, filter: (source) => !LEFT_OUT.has(path.basename(source)) });
  await symlink(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
  return folder;
}

/** The output of Vitest for these tests of a copy, on the database server of this run. */
async function runTests(folder: string, files: readonly string[], names: readonly string[]) {
  const args = ["run", "--config", "test/vitest.config.ts", ...files, "-t", names.map(RegExp.escape).join("|")];
  // The program is not built: these tests start none.
  const env = { TEST_ENGINE: "url", TEST_DATABASE_URL: url, TEST_PROGRAM: "src/main.ts", CI: "true" };
  await using vitest = startScript(path.join(ROOT, "node_modules/vitest/vitest.mjs"), args, { cwd: folder, env });
  return await vitest.ended;
}

/** Errors of a program that is broken, not wrong: the test failed before it reached what it checks. */
const BROKEN = /SyntaxError|ReferenceError|TypeError|syntax error|does not exist|timed out|No test files found/;

beforeAll(async () => {
  const files = new Set(SABOTAGES.map(({ noticedBy: [file] }) => file));
  const names = SABOTAGES.map(({ noticedBy: [, name] }) => name);
  const before = await runTests(unharmed[0] ?? "", [...files], names);
  expect(before.status, before.stdout).toBe(0);
}, LIMIT.timeout);

test.concurrent.each(SABOTAGES)("$name: noticed", LIMIT, async ({ file, replace, by, noticedBy }) => {
  const text = await readFile(path.join(ROOT, file), "utf8");
  // Without a copy to plant it in, it would be planted in the product.
  const folder = unharmed.pop() ?? expect.fail("no copy is free");
  await using restored = new AsyncDisposableStack();
  restored.defer(async () => {
    await writeFile(path.join(folder, file), text);
    unharmed.push(folder);
  });
  await writeFile(
    path.join(folder, file),
    text.replace(replace, () => by),
  );
  const { status, stdout, stderr } = await runTests(folder, [noticedBy[0]], [noticedBy[1]]);
  const said = `${stdout}${stderr}`;
  expect(status, said).toBe(1);
  expect(stderr, said).not.toMatch(BROKEN);
});
