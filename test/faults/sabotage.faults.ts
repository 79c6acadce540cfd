// Makes small wrong changes in the SQL and the transactions of a copy of the product, one at a time. A test must fail of each. Mutation
// testing (stryker.config.json) does the same for pure code, where it needs no database.

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, inject, test } from "vitest";
import { startScript } from "../support/program.ts";
import { SABOTAGES, type Sabotage } from "./sabotages.ts";
import { LIMIT, sweep } from "./sweep.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const { url } = inject("postgres");

const LEFT_OUT = new Set(["node_modules", ".git", "dist", "data"]);
/** Copies of the product in which nothing is planted now: two, as a test mostly waits for its process and its database. */
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

/** Plants the error, runs its test, and takes the error back. */
async function noticed(folder: string, sabotage: Sabotage): Promise<readonly string[]> {
  const { name, replace, by, noticedBy } = sabotage;
  const file = path.join(folder, sabotage.file);
  const text = await readFile(file, "utf8");
  const places = text.split(replace).length - 1;
  if (places !== 1) return [`${name}: its text is ${places} times in ${sabotage.file}, expected once`];
  await writeFile(
    file,
    text.replace(replace, () => by),
  );
  const { status, stdout, stderr } = await runTests(folder, [noticedBy[0]], [noticedBy[1]]);
  await writeFile(file, text);
  if (status === 1 && !BROKEN.test(stderr)) return [];
  return [`${name}: status ${status} of ${noticedBy.join(", ")}\n${stdout}${stderr}`];
}

test("every sabotage is noticed", LIMIT, async () => {
  const [folder = ""] = unharmed;
  const before = await runTests(
    folder,
    [...new Set(SABOTAGES.map(({ noticedBy: [file] }) => file))],
    SABOTAGES.map(({ noticedBy: [, name] }) => name),
  );
  expect(before.status, before.stdout).toBe(0);
  await sweep({
    part: "sabotage",
    file: "sabotage",
    test: "every sabotage is noticed",
    cases: async () => SABOTAGES.map(({ name }) => name),
    atOnce: unharmed.length,
    run: async (name) => {
      const sabotage = SABOTAGES.find((one) => one.name === name);
      if (!sabotage) return [`there is no sabotage "${name}"`];
      const folder = unharmed.pop() ?? "";
      const found = await noticed(folder, sabotage);
      unharmed.push(folder);
      return found;
    },
  });
});
