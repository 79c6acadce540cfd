import { expect, test } from "vitest";
import { periodOf } from "../../../src/web/dashboard/period.ts";

const TODAY = "2026-03-10";

test.each([
  ["", "2026-02-08", "2026-03-09", true],
  ["days=&from=&to=", "2026-02-08", "2026-03-09", true],
  ["days=1", "2026-03-09", "2026-03-09", true],
  ["days=366", "2025-03-09", "2026-03-09", true],
  ["from=2026-03-01&to=2026-03-02", "2026-03-01", "2026-03-02", false],
  ["from=2026-03-10&to=2026-03-10", "2026-03-10", "2026-03-10", false],
  ["to=2026-02-28&from=2025-02-28&days=", "2025-02-28", "2026-02-28", false],
])("%j asks for %s to %s; live, which is a period that moves on every day: %s", (query, start, end, live) => {
  expect(periodOf(new URLSearchParams(query), TODAY)).toEqual({ start, end, live });
});

test.each([
  ["days=0", "days: expected a whole number from 1 to 366"],
  ["days=367", "days: expected a whole number from 1 to 366"],
  ["days=7.5", "days: expected a whole number from 1 to 366"],
  ["days=-7", "days: expected a whole number from 1 to 366"],
  ["days=00000007", "days: expected a whole number from 1 to 366"],
  ["days=7&days=8", "expected each parameter once"],
  ["days=7&from=2026-03-01&to=2026-03-02", "expected days, or from and to; not both"],
  ["from=2026-03-01", "expected both from and to"],
  ["to=2026-03-01&from=", "expected both from and to"],
  ["from=2026-02-30&to=2026-03-02", "from: expected a day that exists, as YYYY-MM-DD"],
  ["from=2026-03-01&to=tomorrow", "to: expected a day that exists, as YYYY-MM-DD"],
  ["from=2026-03-01&to=2026-03-11", "to: expected 2026-03-10 or before, which is today in UTC; got 2026-03-11"],
  ["from=1999-12-31&to=2000-01-01", "from: expected 2000-01-01 or after; got 1999-12-31"],
  ["from=2026-03-02&to=2026-03-01", "from: expected 2026-03-01 or before, which is the last day; got 2026-03-02"],
  [
    "from=2025-03-09&to=2026-03-10",
    "from: expected 2025-03-10 or after, as there are at most 366 days; got 2025-03-09",
  ],
  ["day=7", 'unknown parameter "day"; there are days, from and to'],
  ["__proto__=7", 'unknown parameter "__proto__"; there are days, from and to'],
])("%j is refused: %s", (query, error) => {
  expect(periodOf(new URLSearchParams(query), TODAY)).toEqual({ error });
});
