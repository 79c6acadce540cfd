import { expect, test } from "vitest";
import { addDays, dayCount, dayOf, daysOf, isDay } from "../../src/usage/days.ts";

test.each([
  ["2026-03-01T00:00:00.000Z", "2026-03-01"],
  ["2026-02-28T23:59:59.999Z", "2026-02-28"],
  ["2026-03-29T01:30:00+02:00", "2026-03-28"],
  ["2026-03-28T20:00:00-08:00", "2026-03-29"],
])("%s is in the UTC day %s", (instant, day) => {
  expect(dayOf(new Date(instant))).toBe(day);
});

test.each([
  ["2026-03-01", 0, "2026-03-01"],
  ["2026-03-01", -1, "2026-02-28"],
  ["2024-03-01", -1, "2024-02-29"],
  ["2024-02-29", 365, "2025-02-28"],
  ["2026-12-31", 1, "2027-01-01"],
  // The days on which clocks change in Europe and America.
  ["2026-03-28", 1, "2026-03-29"],
  ["2026-03-29", 1, "2026-03-30"],
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
  ["2026-03-09", "2026-03-01", -7],
])("%s to %s has %i days", (start, end, count) => {
  expect(dayCount({ start, end })).toBe(count);
});

test("the days of a window are in order, and include its first and its last day", () => {
  expect(daysOf({ start: "2024-02-28", end: "2024-03-01" })).toEqual(["2024-02-28", "2024-02-29", "2024-03-01"]);
  expect(daysOf({ start: "2026-12-31", end: "2027-01-01" })).toEqual(["2026-12-31", "2027-01-01"]);
});

test.each(["2026-02-28", "2024-02-29", "2026-12-31", "1999-01-01"])("%s is a day", (text) => {
  expect(isDay(text)).toBe(true);
});

test.each([
  "",
  "2026-02-29",
  "2026-02-30",
  "2026-13-01",
  "2026-00-10",
  "2026-04-31",
  "2026-3-1",
  "20260301",
  "2026-03-01T00:00:00Z",
  " 2026-03-01",
  "2026-03-01\n",
  "+2026-03-01",
  "+010000-01",
  "yesterday",
])("%j is not a day", (text) => {
  expect(isDay(text)).toBe(false);
});
