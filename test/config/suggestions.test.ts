// What is suggested for a misspelt name, how messages show values, and what a pattern of project names matches.

import { expect, test } from "vitest";
import { describeValue, didYouMean, requireKnown } from "../../src/config/messages.ts";
import { matchesPattern } from "../../src/config/projects.ts";

const WORDS = ["none", "model", "method", "feature_set", "tags", "timeoutSeconds"];

test.each([
  ["model", "model"],
  ["MODEL", "model"],
  ["models", "model"],
  ["mdoel", "model"],
  ["metod", "method"],
  ["feature-set", "feature_set"],
  ["FeatureSets", "feature_set"],
  ["tag", "tags"],
  ["timeout", "timeoutSeconds"],
  ["methodology", "method"],
])("for %j the suggestion is %j", (typed, suggested) => {
  expect(didYouMean(typed, WORDS)).toBe(`; did you mean "${suggested}"?`);
});

test.each(["", "x", "me", "user", "mo", "completely different", "sub-model two"])(
  "nothing is suggested for %j",
  (typed) => {
    expect(didYouMean(typed, WORDS)).toBe("");
  },
);

test("of several similar words the nearest is suggested", () => {
  expect(didYouMean("stagin", ["stating", "staging"])).toContain('"staging"');
});

test("nothing is suggested for a word that is part of several candidates", () => {
  expect(didYouMean("days", ["maxAgeDays", "graceDaysLong"])).toBe("");
});

test("a word of two letters is not matched as a part of a longer one", () => {
  expect([didYouMean("ms", ["timeoutMs"]), didYouMean("id-of-it", ["id"])]).toEqual(["", ""]);
});

test("the error for an unknown name lists the known ones", () => {
  const refused = (given: readonly string[] | undefined, known: readonly string[]) => () =>
    requireKnown("--job", given, known);
  for (const given of [undefined, [], ["nightly"]]) expect(refused(given, ["nightly"])).not.toThrow();
  expect(refused(["nightly", "nigtly"], ["nightly"])).toThrow(
    '--job: "nigtly" is not configured (there is "nightly"); did you mean "nightly"?',
  );
  expect(refused(["x"], [])).toThrow('--job: "x" is not configured (there is none)');
});

test.each([
  ["x".repeat(60), JSON.stringify("x".repeat(60))],
  ["x".repeat(61), JSON.stringify(`${"x".repeat(60)}…`)],
  [{ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 }, 'an object with "a", "b", "c", "d", "e"'],
  [{}, "an empty object"],
  [[], "an empty list"],
  [[1], "a list"],
  [null, "null"],
])("a message shows %j as %s", (value, shown) => {
  expect(describeValue(value)).toBe(shown);
});

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
] as const)("the pattern %j matches %j: %j", (pattern, text, fits) => {
  expect(matchesPattern(pattern, text)).toBe(fits);
});

test("a pattern of many stars is matched without trying every split of the text", () => {
  expect(matchesPattern(`${"*a".repeat(90)}*b`, "a".repeat(10_000))).toBe(false);
});
