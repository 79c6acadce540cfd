import { expect, test } from "vitest";
import { didYouMean } from "../../src/config/messages.ts";

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
])("%s was meant to be %s", (typed, meant) => {
  expect(didYouMean(typed, WORDS)).toBe(`; did you mean "${meant}"?`);
});

test.each(["", "x", "me", "user", "completely different", "sub-model two"])("nothing is suggested for %j", (typed) => {
  expect(didYouMean(typed, WORDS)).toBe("");
});

test("of several similar words the nearest is suggested", () => {
  expect(didYouMean("stagin", ["stating", "staging"])).toContain('"staging"');
});

test("nothing is suggested for a word that is part of several candidates", () => {
  expect(didYouMean("days", ["maxAgeDays", "graceDaysLong"])).toBe("");
});
