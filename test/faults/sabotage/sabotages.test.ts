// Checks within seconds that every sabotage still fits the code: the text that it replaces is there, and so is the file of the test
// that must notice it. Running all sabotages takes hours.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { applySabotage, type Sabotage } from "./sabotage.ts";
import { SABOTAGES } from "./sabotages.ts";

const inRoot = (file: string) => path.join(import.meta.dirname, "../../..", file);

const SAMPLE: Sabotage = {
  name: "adds in place of taking away",
  file: "src/sum.ts",
  replace: "a - b",
  by: "$& + a + b",
  caughtBy: ["test/sum.test.ts", "takes away"],
};

test("the replacement is inserted literally", () => {
  expect(applySabotage("return a - b;", SAMPLE)).toBe("return $& + a + b;");
});

test.each([
  ["return a * b;", 0],
  ["return a - b - (a - b);", 2],
])("a sabotage whose text is not exactly once in the file is refused: %j", (text, times) => {
  expect(() => applySabotage(text, SAMPLE)).toThrow(
    `the sabotage "adds in place of taking away" is out of date: expected its text once in src/sum.ts, found it ${times} times`,
  );
});

test("the names of the sabotages are unique", () => {
  expect(new Set(SABOTAGES.map(({ name }) => name)).size).toBe(SABOTAGES.length);
});

test.each(SABOTAGES)("the text to replace and the test file are there: $name", (sabotage) => {
  const text = readFileSync(inRoot(sabotage.file), "utf8");
  expect(applySabotage(text, sabotage)).not.toBe(text);
  expect(existsSync(inRoot(sabotage.caughtBy[0])), sabotage.caughtBy[0]).toBe(true);
});
