import { expect, test } from "vitest";
import { didYouMean, nearMiss } from "../../src/config/suggestions.ts";

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

test.each(["", "x", "me", "user", "completely different", "sub-model two"])("%j is near nothing", (typed) => {
  expect(nearMiss(typed, WORDS)).toBeUndefined();
});

test("the nearest of several is offered", () => {
  expect(nearMiss("stagin", ["stating", "staging"])).toBe("staging");
});

test("a part of several words is no guess", () => {
  expect(nearMiss("days", ["maxAgeDays", "graceDaysLong"])).toBeUndefined();
});

test("without a guess nothing is added to a message", () => {
  expect(didYouMean("user", WORDS)).toBe("");
  expect(didYouMean("modle", WORDS)).toBe('; did you mean "model"?');
});
