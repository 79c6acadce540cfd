import { expect, test } from "vitest";
import type { FailureKind } from "../../src/service/errors.ts";
import { ATTEMPTS_MAX, retryDelayMs } from "../../src/service/retry.ts";

const transient = (count: number): FailureKind[] => Array.from({ length: count }, () => "transient" as const);

test.each<[string, FailureKind[], number, number, number, number | undefined]>([
  ["the first failure waits up to half a second", transient(1), 5, 0, 1, 500],
  ["the second failure waits up to a second", transient(2), 5, 0, 1, 1_000],
  ["the fourth failure waits up to four seconds", transient(4), 5, 0, 1, 4_000],
  ["the random wait may be zero", transient(4), 5, 0, 0, 0],
  ["the back-off is at most thirty seconds", transient(20), 99, 0, 1, 30_000],
  ["no attempt follows the fifth failure", transient(ATTEMPTS_MAX), ATTEMPTS_MAX, 0, 1, undefined],
  ["no attempt follows if only one is allowed", transient(1), 1, 0, 1, undefined],
  ["no attempt follows a final failure", ["final"], 5, 0, 1, undefined],
  ["no attempt follows a final failure after another failure", ["transient", "final"], 5, 0, 1, undefined],
  ["another attempt follows a bad answer", ["bad_answer"], 5, 0, 1, 500],
  ["no attempt follows a second bad answer", ["bad_answer", "bad_answer"], 5, 0, 1, undefined],
  ["another attempt follows a bad answer after another failure", ["transient", "bad_answer"], 5, 0, 1, 1_000],
  ["no attempt follows a second bad answer later", ["bad_answer", "transient", "bad_answer"], 5, 0, 1, undefined],
  ["a longer wait that the service asks for is not shortened", transient(1), 5, 90_000, 0.5, 90_000],
  ["a requested wait of zero does not shorten the back-off", transient(2), 5, 0, 0.5, 500],
])("retryDelayMs: %s", (_name, kinds, attemptsMax, askedMs, random, expected) => {
  expect(retryDelayMs(kinds, attemptsMax, askedMs, random)).toBe(expected);
});
