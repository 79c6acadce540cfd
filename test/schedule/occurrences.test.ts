import { expect, test } from "vitest";
import { latestOccurrence, nextOccurrence, nextOccurrences } from "../../src/schedule/cron.ts";

/** All occurrences from `from` until `until`, written like "2026-03-29T01:00Z". */
function occurrencesBetween(schedule: string, timezone: string, from: string, until: string): string[] {
  const after = new Date(new Date(from).getTime() - 1);
  return nextOccurrences({ schedule, timezone }, after, 500)
    .filter((moment) => moment <= new Date(until))
    .map(short);
}

function short(moment: Date): string {
  return moment.toISOString().replace(/(:00)?\.000Z$/, "Z");
}

// Three days: before, on and after the day on which the clock is set.
test.each([
  ["a time in the gap occurs after it", "2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
  ["a time that comes twice occurs the first time", "2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
])("in Vienna %s", (_name, ...days) => {
  expect(occurrencesBetween("30 2 * * *", "Europe/Vienna", days[0], days[2])).toEqual(days);
});

test("times that fall on one moment because of a gap are one occurrence", () => {
  const occurrences = occurrencesBetween("0,30 2,3 * * *", "Europe/Vienna", "2026-03-29T00:00Z", "2026-03-29T12:00Z");
  expect(occurrences).toEqual(["2026-03-29T01:00Z", "2026-03-29T01:30Z"]);
});

test.each([
  ["0 * * * *", "Europe/Vienna", "2026-10-24T23:00Z", ["23:00Z", "00:00Z", "01:00Z", "02:00Z", "03:00Z"]],
  // 01:45 comes twice: the second time half an hour after the first.
  ["45 * * * *", "Australia/Lord_Howe", "2026-04-04T13:30Z", ["13:45Z", "14:45Z", "15:15Z", "16:15Z", "17:15Z"]],
  ["0 * 30 12 *", "Pacific/Apia", "2011-12-29T00:00Z", []],
])(
  "a schedule of every hour occurs whenever the clock shows its time: %s in %s from %s",
  (schedule, timezone, from, times) => {
    const until = new Date(new Date(from).getTime() + 4 * 3_600_000).toISOString();
    expect(occurrencesBetween(schedule, timezone, from, until).map((moment) => moment.slice(11))).toEqual(times);
  },
);

test.each([
  ["at the scheduled time itself", "15 2 * * *", "2026-03-29T02:15:00.000Z", "2026-03-29T02:15Z"],
  ["within the second of the scheduled time", "15 2 * * *", "2026-03-29T02:15:00.999Z", "2026-03-29T02:15Z"],
  ["a millisecond before the scheduled time", "15 2 * * *", "2026-03-29T02:14:59.999Z", "2026-03-28T02:15Z"],
  ["at midnight", "15 2 * * *", "2026-03-29T00:00:00.000Z", "2026-03-28T02:15Z"],
  ["of a schedule with seconds", "30 15 2 * * *", "2026-03-29T02:15:29.999Z", "2026-03-28T02:15:30Z"],
  ["of a schedule of every ten seconds", "*/10 * * * * *", "2026-03-29T02:15:29.999Z", "2026-03-29T02:15:20Z"],
  ["in the year before", "0 0 25 12 *", "2026-03-29T00:00:00.000Z", "2025-12-25T00:00Z"],
  ["of a schedule of leap days", "0 0 29 2 *", "2024-02-28T00:00:00.000Z", "2020-02-29T00:00Z"],
])("the latest occurrence, %s", (_case, schedule, at, expected) => {
  expect(short(latestOccurrence({ schedule, timezone: "UTC" }, new Date(at)) ?? new Date(0))).toBe(expected);
});

const NIGHTLY = "30 2 * * *";
const HOURLY = "30 * * * *";

test.each([
  ["a second before the gap", NIGHTLY, "2026-03-29T00:59:59Z", "2026-03-28T01:30Z"],
  ["at the end of the gap", NIGHTLY, "2026-03-29T01:00:00Z", "2026-03-29T01:00Z"],
  ["before the time comes again", NIGHTLY, "2026-10-25T01:29:59Z", "2026-10-25T00:30Z"],
  ["when the time has come again", NIGHTLY, "2026-10-25T01:30:00Z", "2026-10-25T00:30Z"],
  ["before the time comes again, every hour", HOURLY, "2026-10-25T01:29:59Z", "2026-10-25T00:30Z"],
  ["when the time has come again, every hour", HOURLY, "2026-10-25T01:30:00Z", "2026-10-25T01:30Z"],
  ["after a gap, every hour", HOURLY, "2026-03-29T01:29:59Z", "2026-03-29T00:30Z"],
])("the latest occurrence in Vienna, %s", (_case, schedule, at, expected) => {
  expect(short(latestOccurrence({ schedule, timezone: "Europe/Vienna" }, new Date(at)) ?? new Date(0))).toBe(expected);
});

test.each([
  ["a second before the gap", NIGHTLY, "2026-03-29T00:59:59Z", "2026-03-29T01:00Z"],
  ["at the end of the gap", NIGHTLY, "2026-03-29T01:00:00Z", "2026-03-30T00:30Z"],
  ["before the time comes again", NIGHTLY, "2026-10-25T01:29:59Z", "2026-10-26T01:30Z"],
  ["before the time comes again, every hour", HOURLY, "2026-10-25T01:29:59Z", "2026-10-25T01:30Z"],
])("the next occurrence in Vienna, %s", (_case, schedule, after, expected) => {
  expect(short(nextOccurrence({ schedule, timezone: "Europe/Vienna" }, new Date(after)) ?? new Date(0))).toBe(expected);
});

test("the next occurrence is always after the given moment, not at it", () => {
  const daily = { schedule: "15 2 * * *", timezone: "UTC" };
  const moment = new Date("2026-03-29T02:15:00Z");
  expect(nextOccurrence(daily, new Date(moment.getTime() - 1))).toEqual(moment);
  expect(nextOccurrence(daily, moment)).toEqual(new Date("2026-03-30T02:15:00Z"));
});

test("nextOccurrences returns as many occurrences as are asked for", () => {
  const weekly = { schedule: "0 6 * * MON", timezone: "UTC" };
  expect(nextOccurrences(weekly, new Date("2026-03-29T00:00:00Z"), 0)).toEqual([]);
  const two = nextOccurrences(weekly, new Date("2026-03-29T00:00:00Z"), 2);
  expect(two.map(short)).toEqual(["2026-03-30T06:00Z", "2026-04-06T06:00Z"]);
});

// The configuration accepts both expressions, although neither a 31st nor the last day of a month is ever a first Monday.
test.each(["0 0 31 * 1#1", "0 * L * 1#1"])("%s never occurs, and the search for an occurrence ends", (schedule) => {
  const never = { schedule, timezone: "Europe/Vienna" };
  expect(latestOccurrence(never, new Date("2026-03-29T00:00:00Z"))).toBeUndefined();
  expect(nextOccurrences(never, new Date("2026-03-29T00:00:00Z"), 3)).toEqual([]);
});
