import { expect, test } from "vitest";
import { type ResponseHeaders, requestedWaitMs } from "../../src/service/errors.ts";

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
