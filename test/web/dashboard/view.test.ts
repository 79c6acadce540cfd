import { expect, test } from "vitest";
import { comparedWindow, fixedView, readView, type View, viewQuery } from "../../../src/web/dashboard/view.ts";

const TODAY = "2026-03-10";

function viewOf(query: string, today = TODAY): View {
  const view = readView(new URLSearchParams(query), today);
  if ("error" in view) throw new Error(view.error);
  return view;
}

test.each([
  ["", "2026-02-08", "2026-03-09", true],
  ["days=&from=&to=&project=", "2026-02-08", "2026-03-09", true],
  ["days=1", "2026-03-09", "2026-03-09", true],
  ["days=366", "2025-03-09", "2026-03-09", true],
  ["period=7d", "2026-03-03", "2026-03-09", true],
  ["period=this-month", "2026-03-01", "2026-03-09", true],
  ["period=last-month", "2026-02-01", "2026-02-28", true],
  ["from=2026-03-01&to=2026-03-02", "2026-03-01", "2026-03-02", false],
  ["from=2026-03-10&to=2026-03-10", "2026-03-10", "2026-03-10", false],
  ["to=2026-02-28&from=2025-02-28&days=", "2025-02-28", "2026-02-28", false],
])("%j asks for %s to %s; live, which is a period that moves on with the days: %s", (query, start, end, live) => {
  expect(viewOf(query).period).toMatchObject({ start, end, live });
});

test("on the first day of a month, this month is that day", () => {
  expect(viewOf("period=this-month", "2026-03-01").period).toMatchObject({ start: "2026-03-01", end: "2026-03-01" });
});

test("the form of a named period also sends its name, and dates win over it", () => {
  expect(viewOf("period=7d&from=2026-03-01&to=2026-03-02").period).toMatchObject({ start: "2026-03-01", live: false });
});

test.each([
  "",
  "?period=7d",
  "?days=45",
  "?from=2026-03-01&to=2026-03-02&compare=year&project=a+%26+b",
  "?compare=none&id=1",
])("the view of %j has that query again", (query) => {
  expect(viewQuery(viewOf(query))).toBe(query);
});

test("a changed view keeps what is not changed, and a default is left out", () => {
  const view = viewOf("days=30&project=p");
  expect(viewQuery(view, { compare: "none" })).toBe("?compare=none&project=p");
  expect(viewQuery(view, { project: undefined })).toBe("");
});

test.each([
  ["period=7d", "2026-02-24", "2026-03-02"],
  ["period=7d&compare=year", "2025-03-03", "2025-03-09"],
  // A whole calendar month with the one before, this month with the same days of it; other days with as many.
  ["period=last-month", "2026-01-01", "2026-01-31"],
  ["from=2025-10-01&to=2025-10-31", "2025-09-01", "2025-09-30"],
  ["from=2026-01-01&to=2026-01-31", "2025-12-01", "2025-12-31"],
  ["from=2026-01-01&to=2026-02-28", "2025-11-03", "2025-12-31"],
  ["period=last-month&compare=year", "2025-02-01", "2025-02-28"],
  ["period=this-month", "2026-02-01", "2026-02-09"],
  ["from=2026-03-01&to=2026-03-09", "2026-02-20", "2026-02-28"],
  ["from=2026-03-01&to=2026-03-09&compare=month", "2026-02-01", "2026-02-09"],
  // Other days with as many, from the same day of the month before: with usage that does not change, nothing is to have changed.
  ["from=2025-03-29&to=2025-03-31&compare=month", "2025-02-28", "2025-03-02"],
  ["from=2025-10-24&to=2025-11-22&compare=month", "2025-09-24", "2025-10-23"],
  ["from=2025-03-05&to=2025-04-03&compare=month", "2025-02-03", "2025-03-04"],
  ["from=2025-02-01&to=2025-02-28&compare=month", "2025-01-01", "2025-01-31"],
  ["from=2025-01-31&to=2025-03-01&compare=month", "2024-12-31", "2025-01-29"],
  // As many days, also around 29 February; in 366 days before the period, where a year before has 365.
  ["from=2024-02-29&to=2024-03-01&compare=year", "2023-02-28", "2023-03-01"],
  ["from=2024-02-01&to=2024-02-29&compare=year", "2023-02-01", "2023-03-01"],
  ["from=2025-02-01&to=2025-03-01&compare=year", "2024-02-01", "2024-02-29"],
  ["from=2024-01-01&to=2024-12-31&compare=year", "2022-12-31", "2023-12-31"],
])("%j is compared with %s to %s", (query, start, end) => {
  expect(comparedWindow(viewOf(query))).toEqual({ start, end });
});

test.each([
  ["2026-03-01", "2026-02-01", "2026-02-01"],
  ["2026-03-31", "2026-02-01", "2026-02-28"],
])("on %s, this month is compared with %s to %s", (today, start, end) => {
  expect(comparedWindow(viewOf("period=this-month", today))).toEqual({ start, end });
});

test.each([
  ["period=this-month", TODAY],
  ["period=this-month&compare=year", TODAY],
  ["period=last-month", TODAY],
  // The first seven days, and all thirty, of a month.
  ["period=7d", "2026-03-08"],
  ["period=30d", "2025-10-01"],
  ["compare=month", TODAY],
])("the days of %j as dates are compared with the same days as those by name, on %s", (query, today) => {
  const view = viewOf(query, today);
  const fixed = viewQuery(fixedView(view));
  expect(fixed).toContain(`from=${view.period.start}&to=${view.period.end}`);
  expect(comparedWindow(viewOf(fixed.slice(1), "2026-04-20"))).toEqual(comparedWindow(view));
});

test("it is compared with nothing if the query says so", () => {
  expect(comparedWindow(viewOf("compare=none"))).toBeUndefined();
});

test.each([
  ["days=0", "days: expected a whole number from 1 to 366"],
  ["days=367", "days: expected a whole number from 1 to 366"],
  ["days=7.5", "days: expected a whole number from 1 to 366"],
  ["days=-7", "days: expected a whole number from 1 to 366"],
  ["days=00000007", "days: expected a whole number from 1 to 366"],
  ["days=7&days=8", "expected each parameter once"],
  ["days=7&period=30d", "expected days or period, not both"],
  ["period=tomorrow", "period: expected one of 7d, 30d, 90d, this-month, last-month"],
  ["compare=never", "compare: expected one of before, month, year, none"],
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
  ["day=7", 'unknown parameter "day"; there are period, days, from, to, compare, project, id'],
  ["__proto__=7", 'unknown parameter "__proto__"; there are period, days, from, to, compare, project, id'],
])("%j is refused: %s", (query, error) => {
  expect(readView(new URLSearchParams(query), TODAY)).toEqual({ error });
});
