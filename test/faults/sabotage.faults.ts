// Makes small wrong changes in the SQL and the transactions of a copy of the product, one at a time. A test must fail of each. Mutation
// testing (stryker.config.json) does the same for pure code, where it needs no database.

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, inject, test } from "vitest";
import { startScript } from "../support/program.ts";
import { SABOTAGES } from "./sabotages.ts";
import { LIMIT, sweep } from "./sweep.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const { url } = inject("postgres");

const folder = await mkdtemp(path.join(tmpdir(), "usage-export-sabotage-"));
afterAll(() => rm(folder, { recursive: true }));
const LEFT_OUT = new Set(["node_modules", ".git", "dist", "data"]);
await cp(ROOT, folder, { recursive: true, filter: (source) => !LEFT_OUT.has(path.basename(source)) });
await symlink(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));

/** The output of Vitest for these tests of the copy, on the database server of this run. */
async function runTests(files: readonly string[], names: readonly string[]) {
  const args = ["run", "--config", "test/vitest.config.ts", ...files, "-t", names.map(RegExp.escape).join("|")];
  // The program is not built: these tests start none.
  const env = { TEST_ENGINE: "url", TEST_DATABASE_URL: url, TEST_PROGRAM: "src/main.ts", CI: "true" };
  await using vitest = startScript(path.join(ROOT, "node_modules/vitest/vitest.mjs"), args, { cwd: folder, env });
  return await vitest.ended;
}

/** Errors of a program that is broken, not wrong: the test failed before it reached what it checks. */
const BROKEN = /SyntaxError|ReferenceError|TypeError|syntax error|does not exist|timed out|No test files found/;

test("every sabotage is noticed", LIMIT, async () => {
  const unharmed = await runTests(
    [...new Set(SABOTAGES.map(({ noticedBy: [file] }) => file))],
    SABOTAGES.map(({ noticedBy: [, name] }) => name),
  );
  expect(unharmed.status, unharmed.stdout).toBe(0);
  await sweep({
    part: "sabotage",
    file: "sabotage",
    test: "every sabotage is noticed",
    cases: async () => SABOTAGES.map(({ name }) => name),
    atOnce: 1,
    run: async (name) => {
      const sabotage = SABOTAGES.find((one) => one.name === name);
      if (!sabotage) return [`there is no sabotage "${name}"`];
      const file = path.join(folder, sabotage.file);
      const text = await readFile(file, "utf8");
      const places = text.split(sabotage.replace).length - 1;
      if (places !== 1) return [`${name}: its text is ${places} times in ${sabotage.file}, expected once`];
      await writeFile(
        file,
        text.replace(sabotage.replace, () => sabotage.by),
      );
      const { status, stdout, stderr } = await runTests([sabotage.noticedBy[0]], [sabotage.noticedBy[1]]);
      await writeFile(file, text);
      if (status === 1 && !BROKEN.test(stderr)) return [];
      return [`${name}: status ${status} of ${sabotage.noticedBy.join(", ")}\n${stdout}${stderr}`];
    },
  });
});
