import { expect, test } from "vitest";
import { didYouMean, nearMiss } from "../../src/config/messages.ts";

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
  expect(nearMiss(typed, WORDS)).toBe(meant);
});

test.each(["", "x", "me", "user", "completely different", "sub-model two"])("nothing is suggested for %j", (typed) => {
  expect(nearMiss(typed, WORDS)).toBeUndefined();
});

test("of several similar words the nearest is suggested", () => {
  expect(nearMiss("stagin", ["stating", "staging"])).toBe("staging");
});

test("nothing is suggested for a word that is part of several candidates", () => {
  expect(nearMiss("days", ["maxAgeDays", "graceDaysLong"])).toBeUndefined();
});

test("without a guess nothing is added to a message", () => {
  expect(didYouMean("user", WORDS)).toBe("");
  expect(didYouMean("modle", WORDS)).toBe('; did you mean "model"?');
});
