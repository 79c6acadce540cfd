import { expect, test } from "vitest";
import { choosePeriod, type PeriodOptions } from "../../../src/cli/selection.ts";

const TODAY = "2026-03-18";

const PERIODS: readonly (readonly [string, PeriodOptions, string, string])[] = [
  ["the last 28 complete days", {}, "2026-02-18", "2026-03-17"],
  ["28 days up to --to", { to: "2026-01-30" }, "2026-01-03", "2026-01-30"],
  ["the days from --from to yesterday", { from: "2026-03-10" }, "2026-03-10", "2026-03-17"],
  ["one day", { from: "2026-03-10", to: "2026-03-10" }, "2026-03-10", "2026-03-10"],
  ["today, which is not over", { from: TODAY, to: TODAY }, TODAY, TODAY],
  ["a leap year", { from: "2024-01-01", to: "2024-12-31" }, "2024-01-01", "2024-12-31"],
];

test.each(PERIODS)("a report can cover %s", (_, options, start, end) => {
  expect(choosePeriod(options, TODAY)).toEqual({ start, end });
});

const FAULTS: readonly (readonly [string, PeriodOptions, string])[] = [
  ["ends tomorrow", { to: "2026-03-19" }, "--to: expected 2026-03-18 or before, which is today in UTC; got 2026-03-19"],
  [
    "begins after its end",
    { from: "2026-03-11", to: "2026-03-10" },
    "--from: expected 2026-03-10 or before, which is the last day; got 2026-03-11",
  ],
  [
    "begins today and has no --to, so that it ends yesterday",
    { from: TODAY },
    "--from: expected 2026-03-17 or before, which is the last day; got 2026-03-18",
  ],
  [
    "begins before the year 2000",
    { from: "0000-01-01", to: "0000-01-02" },
    "--from: expected 2000-01-01 or after; got 0000-01-01",
  ],
  [
    "has 367 days",
    { from: "2024-01-01", to: "2025-01-01" },
    "--from: expected 2024-01-02 or after, as there are at most 366 days; got 2024-01-01",
  ],
];

test.each(FAULTS)("a report that %s is refused", (_, options, message) => {
  expect(() => choosePeriod(options, TODAY)).toThrow(expect.objectContaining({ code: "config", message }));
});
