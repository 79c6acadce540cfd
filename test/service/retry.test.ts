import { expect, test } from "vitest";
import { ATTEMPTS_MAX, type FailureKind, isTransient, retryDelayMs } from "../../src/service/retry.ts";

const transient = (count: number): FailureKind[] => Array.from({ length: count }, () => "transient" as const);

test.each([
  [200, false],
  [302, false],
  [400, false],
  [401, false],
  [403, false],
  [404, false],
  [408, true],
  [409, false],
  [422, false],
  [425, true],
  [429, true],
  [498, false],
  [499, true],
  [500, true],
  [503, true],
  [599, true],
])("status %i is worth another attempt: %s", (status, expected) => {
  expect(isTransient(status)).toBe(expected);
});

test.each<[string, FailureKind[], number, number | undefined, number, number | undefined]>([
  ["the first failure waits up to half a second", transient(1), 5, undefined, 1, 500],
  ["the second up to a second", transient(2), 5, undefined, 1, 1_000],
  ["the fourth up to four", transient(4), 5, undefined, 1, 4_000],
  ["the jitter is full: it may be no wait at all", transient(4), 5, undefined, 0, 0],
  ["the back-off ends at thirty seconds", transient(20), 99, undefined, 1, 30_000],
  ["the fifth failure is the last", transient(ATTEMPTS_MAX), ATTEMPTS_MAX, undefined, 1, undefined],
  ["a single attempt is the last", transient(1), 1, undefined, 1, undefined],
  ["a final failure is the last", ["final"], 5, undefined, 1, undefined],
  ["a final failure after others too", ["transient", "final"], 5, 0, 1, undefined],
  ["a bad answer is tried once more", ["bad_answer"], 5, undefined, 1, 500],
  ["a second bad answer is the last", ["bad_answer", "bad_answer"], 5, undefined, 1, undefined],
  ["a bad answer after another failure is tried once more", ["transient", "bad_answer"], 5, undefined, 1, 1_000],
  [
    "two bad answers are the last, whatever came between",
    ["bad_answer", "transient", "bad_answer"],
    5,
    0,
    1,
    undefined,
  ],
  ["what the service asks for is waited", transient(1), 5, 90_000, 0.5, 90_000],
  ["asking for nothing does not end the back-off", transient(2), 5, 0, 0.5, 500],
])("%s", (_name, kinds, attemptsMax, askedMs, random, expected) => {
  expect(retryDelayMs(kinds, attemptsMax, askedMs, random)).toBe(expected);
});
