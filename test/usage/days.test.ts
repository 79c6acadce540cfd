import { expect, test } from "vitest";
import { addDays, comparedPeriod, dayCount, dayOf, daysOf, isDay, periodError } from "../../src/usage/days.ts";

test.each([
  ["2026-03-01T00:00:00.000Z", "2026-03-01"],
  ["2026-02-28T23:59:59.999Z", "2026-02-28"],
  ["2026-03-29T01:30:00+02:00", "2026-03-28"],
  ["2026-03-28T20:00:00-08:00", "2026-03-29"],
])("%s is in the UTC day %s", (instant, day) => {
  expect(dayOf(new Date(instant))).toBe(day);
});

test.each([
  ["2026-03-01", -1, "2026-02-28"],
  ["2024-03-01", -1, "2024-02-29"],
  ["2024-02-29", 365, "2025-02-28"],
  ["2026-12-31", 1, "2027-01-01"],
  // The days on which clocks change in Europe and America.
  ["2026-03-28", 1, "2026-03-29"],
  ["2026-03-08", 1, "2026-03-09"],
  ["2026-11-01", -1, "2026-10-31"],
])("%s plus %i days is %s", (day, days, expected) => {
  expect(addDays(day, days)).toBe(expected);
});

test.each([
  ["2026-03-01", "2026-03-01", 1],
  ["2026-02-28", "2026-03-01", 2],
  ["2024-02-28", "2024-03-01", 3],
  ["2026-03-28", "2026-03-30", 3],
  ["2026-03-02", "2026-03-01", 0],
])("%s to %s has %i days", (start, end, count) => {
  expect(dayCount({ start, end })).toBe(count);
});

test("the days of a window are listed in order from its first to its last", () => {
  expect(daysOf({ start: "2024-02-28", end: "2024-03-01" })).toEqual(["2024-02-28", "2024-02-29", "2024-03-01"]);
  expect(daysOf({ start: "2026-12-31", end: "2027-01-01" })).toEqual(["2026-12-31", "2027-01-01"]);
});

test.each(["2026-02-28", "2024-02-29", "2026-12-31", "1999-01-01"])("%s is a day", (text) => {
  expect(isDay(text)).toBe(true);
});

test.each([
  ...["", "2026-02-29", "2026-13-01", "2026-3-1", "20260301"],
  ...["2026-03-01T00:00:00Z", " 2026-03-01", "2026-03-01\n", "+010000-01", "yesterday"],
])("%j is not a day", (text) => {
  expect(isDay(text)).toBe(false);
});

test.each([
  // A whole calendar month is compared with the month before.
  ["2026-10-01", "2026-10-31", "2026-09-01", "2026-09-30"],
  ["2026-02-01", "2026-02-28", "2026-01-01", "2026-01-31"],
  ["2026-01-01", "2026-01-31", "2025-12-01", "2025-12-31"],
  // Any other period is compared with one of the same length, a number of whole weeks earlier.
  ["2026-11-22", "2026-11-22", "2026-11-15", "2026-11-15"],
  ["2026-11-16", "2026-11-22", "2026-11-09", "2026-11-15"],
  ["2026-10-24", "2026-11-22", "2026-09-19", "2026-10-18"],
  ["2026-11-01", "2026-11-22", "2026-10-04", "2026-10-25"],
  ["2026-01-01", "2026-02-28", "2025-10-30", "2025-12-27"],
] as const)("%s to %s is compared with %s to %s", (start, end, from, to) => {
  expect(comparedPeriod({ start, end })).toEqual({ start: from, end: to });
});

const TODAY = "2026-03-18";

test.each([
  ["2026-03-18", "2026-03-18", undefined],
  ["2026-03-18", "2026-03-19", "to: expected 2026-03-18 or before, which is today in UTC; got 2026-03-19"],
  ["2026-03-19", "2026-03-18", "from: expected 2026-03-18 or before, which is the last day; got 2026-03-19"],
  ["2000-01-01", "2000-01-01", undefined],
  ["1999-12-31", "2000-01-01", "from: expected 2000-01-01 or after; got 1999-12-31"],
  ["2024-01-01", "2024-12-31", undefined],
  ["2024-01-01", "2025-01-01", "from: expected 2024-01-02 or after, as there are at most 366 days; got 2024-01-01"],
])("the period %s to %s has the error: %s", (start, end, error) => {
  expect(periodError({ start, end }, TODAY)).toBe(error);
});
