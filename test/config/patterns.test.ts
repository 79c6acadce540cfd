import { expect, test } from "vitest";
import { matchesPattern } from "../../src/config/projects.ts";

test.each([
  ["*", "any text", true],
  ["prod-*", "prod-", true],
  ["prod-*", "Prod-a", false],
  ["*-eu", "prod-eu", true],
  ["*-eu", "prod-eu-1", false],
  ["a*a", "a", false],
  ["a*a", "aa", true],
  ["a*b*c", "a-b-b-c", true],
  ["ab*bc", "abc", false],
  ["*b*b", "b", false],
  ["a.c", "abc", false],
  ["plain", "plain", true],
] as const)("pattern %j and text %j", (pattern, text, fits) => {
  expect(matchesPattern(pattern, text)).toBe(fits);
});

test("a pattern of many stars takes no time", () => {
  expect(matchesPattern(`${"*a".repeat(90)}*b`, "a".repeat(10_000))).toBe(false);
});
