// Makes small wrong changes in the SQL and the transactions of a copy of the product, one at a time. A test must fail of each. Mutation
// testing (stryker.config.json) does the same for pure code, where it needs no database.

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeAll, expect, inject, test } from "vitest";
import { startScript } from "../support/program.ts";
import { SABOTAGES } from "./sabotages.ts";
import { LIMIT } from "./sweep.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const { url } = inject("postgres");

const LEFT_OUT = new Set(["node_modules", ".git", "dist", "data"]);

/** The folder is removed when it is disposed of. */
async function copyProduct(): Promise<AsyncDisposable & { readonly folder: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-sabotage-"));
  await cp(ROOT, folder, { recursive: true, filter: (source) => !LEFT_OUT.has(path.basename(source)) });
  await symlink(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
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
  await using copy = await copyProduct();
  const before = await runTests(copy.folder, [...files], names);
  expect(before.status, before.stdout).toBe(0);
}, LIMIT.timeout);

test.concurrent.each(SABOTAGES)("$name: noticed", LIMIT, async ({ file, replace, by, noticedBy }) => {
  await using copy = await copyProduct();
  const planted = path.join(copy.folder, file);
  const text = await readFile(planted, "utf8");
  await writeFile(
    planted,
    text.replace(replace, () => by),
  );
  const { status, stdout, stderr } = await runTests(copy.folder, [noticedBy[0]], [noticedBy[1]]);
  const said = `${stdout}${stderr}`;
  expect(status, said).toBe(1);
  expect(stderr, said).not.toMatch(BROKEN);
});
