// What is to be done wrong must still be there to do, and the test that is to notice too: told here at once, and not by the
// hours of the whole harness.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { type Sabotage, spoiled } from "./sabotage.ts";
import { SABOTAGES } from "./sabotages.ts";

const inRoot = (file: string) => path.join(import.meta.dirname, "../../..", file);

const SAMPLE: Sabotage = {
  name: "adds in place of taking away",
  file: "src/sum.ts",
  replace: "a - b",
  by: "$& + a + b",
  caughtBy: ["test/sum.test.ts", "takes away"],
};

test("what is replaced is replaced as it stands", () => {
  expect(spoiled("return a - b;", SAMPLE)).toBe("return $& + a + b;");
});

test.each([
  ["return a * b;", 0],
  ["return a - b - (a - b);", 2],
])("in %j, which has it otherwise than once, nothing can be done wrong", (text, times) => {
  expect(() => spoiled(text, SAMPLE)).toThrow(
    `the sabotage "adds in place of taking away" is out of date: src/sum.ts has what it replaces ${times} times, not once`,
  );
});

test("no two have one name", () => {
  expect(new Set(SABOTAGES.map(({ name }) => name)).size).toBe(SABOTAGES.length);
});

test.each(SABOTAGES)("it can be done wrong: $name", (sabotage) => {
  const text = readFileSync(inRoot(sabotage.file), "utf8");
  expect(spoiled(text, sabotage)).not.toBe(text);
  expect(existsSync(inRoot(sabotage.caughtBy[0])), sabotage.caughtBy[0]).toBe(true);
});
