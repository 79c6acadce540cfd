import { expect, test } from "vitest";
import { comparedPeriod, periodError } from "../../src/usage/days.ts";

test.each([
  // A whole calendar month with the one before.
  ["2026-10-01", "2026-10-31", "2026-09-01", "2026-09-30"],
  ["2026-02-01", "2026-02-28", "2026-01-01", "2026-01-31"],
  ["2026-01-01", "2026-01-31", "2025-12-01", "2025-12-31"],
  // Other days with as many, whole weeks earlier.
  ["2026-11-22", "2026-11-22", "2026-11-15", "2026-11-15"],
  ["2026-11-16", "2026-11-22", "2026-11-09", "2026-11-15"],
  ["2026-10-26", "2026-11-22", "2026-09-28", "2026-10-25"],
  ["2026-10-24", "2026-11-22", "2026-09-19", "2026-10-18"],
  ["2026-11-01", "2026-11-22", "2026-10-04", "2026-10-25"],
  ["2026-01-01", "2026-02-28", "2025-10-30", "2025-12-27"],
] as const)("%s to %s is compared with %s to %s", (start, end, from, to) => {
  expect(comparedPeriod({ start, end })).toEqual({ start: from, end: to });
});

const TODAY = "2026-03-18";

test.each([
  ["2026-03-18", "2026-03-18", undefined],
  ["2026-03-18", "2026-03-19", "TO: expected 2026-03-18 or before, which is today in UTC; got 2026-03-19"],
  ["2026-03-19", "2026-03-18", "FROM: expected 2026-03-18 or before, which is the last day; got 2026-03-19"],
  ["2000-01-01", "2000-01-01", undefined],
  ["1999-12-31", "2000-01-01", "FROM: expected 2000-01-01 or after; got 1999-12-31"],
  ["2024-01-01", "2024-12-31", undefined],
  ["2024-01-01", "2025-01-01", "FROM: expected 2024-01-02 or after, as there are at most 366 days; got 2024-01-01"],
])("the period %s to %s has the error: %s", (start, end, error) => {
  expect(periodError({ start, end }, TODAY, { from: "FROM", to: "TO" })).toBe(error);
});
