import { expect, test } from "vitest";
import { type ResponseHeaders, requestedWait } from "../../src/service/retry.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const DATE = "Sun, 01 Mar 2026 12:00:00 GMT";
const THREE_DAYS_LATER = "Wed, 04 Mar 2026 12:00:00 GMT";

test.each<[string, ResponseHeaders, number | undefined]>([
  ["no header says nothing", {}, undefined],
  ["seconds", { "retry-after": "31" }, 31_000],
  ["no seconds", { "retry-after": "0" }, 0],
  ["an hour", { "retry-after": "3600" }, 3_600_000],
  ["blanks around the seconds", { "retry-after": " 7 " }, 7_000],
  ["a negative number says nothing", { "retry-after": "-5" }, undefined],
  ["a fraction says nothing", { "retry-after": "1.5" }, undefined],
  ["an exponent says nothing", { "retry-after": "1e9" }, undefined],
  ["words say nothing", { "retry-after": "soon" }, undefined],
  ["an empty header says nothing", { "retry-after": "" }, undefined],
  ["a bare year is no date", { "retry-after": "2026-03-01" }, undefined],
  ["a weekday that does not exist is no date", { "retry-after": "Sun, 41 Mar 2026 12:00:00 GMT" }, undefined],
  ["a date from now", { "retry-after": "Sun, 01 Mar 2026 12:00:30 GMT" }, 30_000],
  ["a date in the past is no wait", { "retry-after": "Sun, 01 Mar 2026 11:00:00 GMT" }, 0],
  [
    "a date is measured against the answer's own clock",
    { date: THREE_DAYS_LATER, "retry-after": "Wed, 04 Mar 2026 12:01:00 GMT" },
    60_000,
  ],
  ["a date header that is none is ignored", { date: "now", "retry-after": "Sun, 01 Mar 2026 12:00:09 GMT" }, 9_000],
  ["of two headers the longer counts", { "retry-after": ["2", "5"] }, 5_000],
  ["of two headers the one that can be read counts", { "retry-after": ["soon", "3"] }, 3_000],
  ["the reset of a rate limit in seconds", { "x-ratelimit-reset": "12" }, 12_000],
  ["the reset of a rate limit as an instant", { date: DATE, "x-ratelimit-reset": `${NOW_MS / 1000 + 8}` }, 8_000],
  ["a retry-after counts before a reset", { "retry-after": "1", "x-ratelimit-reset": "12" }, 1_000],
  ["a reset counts where retry-after is unreadable", { "retry-after": "soon", "x-ratelimit-reset": "12" }, 12_000],
])("%s", (_name, headers, expected) => {
  const wait = expected === undefined ? undefined : { requestedMs: expected, waitMs: expected };
  expect(requestedWait(429, headers, NOW_MS)).toEqual(wait);
});

test.each<[string, ResponseHeaders, number, number | undefined]>([
  ["more than an hour is an hour", { "retry-after": "3601" }, 3_601_000, 3_600_000],
  ["a day is an hour", { "retry-after": "86400" }, 86_400_000, 3_600_000],
  ["more than a day is a mistake", { "retry-after": "86401" }, 86_401_000, undefined],
  ["a year is a mistake", { "retry-after": "31536000" }, 31_536_000_000, undefined],
  [
    "so is a date in 2099",
    { date: DATE, "retry-after": "Sun, 01 Mar 2099 12:00:00 GMT" },
    2_303_683_200_000,
    undefined,
  ],
  [
    "so is a reset in two days",
    { date: DATE, "x-ratelimit-reset": `${NOW_MS / 1000 + 172_800}` },
    172_800_000,
    undefined,
  ],
  ["of two headers the one that can be meant counts", { "retry-after": ["999999999", "5"] }, 5_000, 5_000],
  [
    "a reset counts where retry-after is a mistake",
    { "retry-after": "999999999", "x-ratelimit-reset": "12" },
    12_000,
    12_000,
  ],
])("%s", (_name, headers, requestedMs, waitMs) => {
  expect(requestedWait(429, headers, NOW_MS)).toEqual({ requestedMs, waitMs });
});

test("only a 429 is asked when its limit ends", () => {
  expect(requestedWait(500, { "x-ratelimit-reset": "12" }, NOW_MS)).toBeUndefined();
  expect(requestedWait(503, { "retry-after": "12" }, NOW_MS)).toMatchObject({ waitMs: 12_000 });
});
