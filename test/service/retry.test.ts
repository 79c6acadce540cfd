import { expect, test } from "vitest";
import { type FailureKind, type ResponseHeaders, requestedWaitMs } from "../../src/service/errors.ts";
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

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const DATE = "Sun, 01 Mar 2026 12:00:00 GMT";
const LATER = "Wed, 04 Mar 2026 12:00:00 GMT";

test.each<[string, ResponseHeaders, number | undefined]>([
  ["no header", {}, undefined],
  ["a number of seconds", { "retry-after": "31" }, 31_000],
  ["zero seconds", { "retry-after": "0" }, 0],
  ["blanks around the seconds", { "retry-after": " 7 " }, 7_000],
  ["a negative number is ignored", { "retry-after": "-5" }, undefined],
  ["a fraction is ignored", { "retry-after": "1.5" }, undefined],
  ["an exponent is ignored", { "retry-after": "1e9" }, undefined],
  ["a word is ignored", { "retry-after": "soon" }, undefined],
  ["an empty header is ignored", { "retry-after": "" }, undefined],
  ["a date in another format is ignored", { "retry-after": "2026-03-01" }, undefined],
  ["a date that does not exist is ignored", { "retry-after": "Sun, 41 Mar 2026 12:00:00 GMT" }, undefined],
  ["a date in the future", { "retry-after": "Sun, 01 Mar 2026 12:00:30 GMT" }, 30_000],
  ["a date in the past is a wait of zero", { "retry-after": "Sun, 01 Mar 2026 11:00:00 GMT" }, 0],
  ["a date is compared with the Date", { date: LATER, "retry-after": "Wed, 04 Mar 2026 12:01:00 GMT" }, 60_000],
  ["an unreadable Date header is ignored", { date: "now", "retry-after": "Sun, 01 Mar 2026 12:00:09 GMT" }, 9_000],
  ["of two headers the longer counts", { "retry-after": ["2", "5"] }, 5_000],
  ["of two headers the one that can be read counts", { "retry-after": ["soon", "3"] }, 3_000],
  ["more than an hour is cut to an hour", { "retry-after": "3601" }, 3_600_000],
  ["a day is cut to an hour", { "retry-after": "86400" }, 3_600_000],
  ["more than a day is a mistake", { "retry-after": "86401" }, undefined],
  ["a date in 2099 is a mistake", { date: DATE, "retry-after": "Sun, 01 Mar 2099 12:00:00 GMT" }, undefined],
  ["of two headers the plausible one counts", { "retry-after": ["999999999", "5"] }, 5_000],
])("the requested wait: %s", (_name, headers, expected) => {
  expect(requestedWaitMs(headers, NOW_MS)).toBe(expected);
});
