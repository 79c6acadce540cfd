import { expect, test } from "vitest";
import { comparedPeriod, periodError } from "../../src/usage/days.ts";

test.each([
  // A whole calendar month with the one before.
  ["2026-10-01", "2026-10-31", "before", "2026-09-01", "2026-09-30"],
  ["2026-02-01", "2026-02-28", "before", "2026-01-01", "2026-01-31"],
  ["2026-01-01", "2026-01-31", "before", "2025-12-01", "2025-12-31"],
  // Other days with as many, whole weeks earlier.
  ["2026-11-22", "2026-11-22", "before", "2026-11-15", "2026-11-15"],
  ["2026-11-16", "2026-11-22", "before", "2026-11-09", "2026-11-15"],
  ["2026-10-26", "2026-11-22", "before", "2026-09-28", "2026-10-25"],
  ["2026-10-24", "2026-11-22", "before", "2026-09-19", "2026-10-18"],
  ["2026-11-01", "2026-11-22", "before", "2026-10-04", "2026-10-25"],
  ["2026-01-01", "2026-02-28", "before", "2025-10-30", "2025-12-27"],
  // The same dates a year before, of a month the whole month.
  ["2028-02-01", "2028-02-29", "year", "2027-02-01", "2027-02-28"],
  ["2025-02-01", "2025-02-28", "year", "2024-02-01", "2024-02-29"],
  ["2026-03-03", "2026-03-09", "year", "2025-03-03", "2025-03-09"],
  ["2024-02-29", "2024-03-01", "year", "2023-02-28", "2023-03-01"],
  ["2024-01-01", "2024-12-31", "year", "2023-01-01", "2023-12-31"],
  // 366 days would be compared with their own first day.
  ["2025-01-01", "2026-01-01", "year", "2023-12-27", "2024-12-26"],
] as const)("%s to %s is compared (%s) with %s to %s", (start, end, comparison, from, to) => {
  expect(comparedPeriod({ start, end }, comparison)).toEqual({ start: from, end: to });
});

test("it is compared with nothing if that is asked for", () => {
  expect(comparedPeriod({ start: "2026-10-01", end: "2026-10-31" }, "none")).toBeUndefined();
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
