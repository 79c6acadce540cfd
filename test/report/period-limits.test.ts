import { expect, test } from "vitest";
import { periodError } from "../../src/report/report-data.ts";

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
