import { expect, test } from "vitest";
import { comparedWindow, fixedView, readView, type View, viewQuery } from "../../../src/web/dashboard/view.ts";

const TODAY = "2026-03-10";

function viewOf(query: string, today = TODAY): View {
  const view = readView(new URLSearchParams(query), today);
  if ("error" in view) throw new Error(view.error);
  return view;
}

test.each([
  ["", "2026-02-10", "2026-03-09", true],
  ["days=&from=&to=&project=", "2026-02-10", "2026-03-09", true],
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
  const view = viewOf("days=28&project=p");
  expect(viewQuery(view, { compare: "none" })).toBe("?compare=none&project=p");
  expect(viewQuery(view, { project: undefined })).toBe("");
});

test.each(["period=this-month", "period=last-month&compare=year", "period=7d", ""])(
  "the days of %j as dates are compared with the same days as those by name",
  (query) => {
    const view = viewOf(query);
    const fixed = viewQuery(fixedView(view));
    expect(fixed).toContain(`from=${view.period.start}&to=${view.period.end}`);
    expect(comparedWindow(viewOf(fixed.slice(1), "2026-04-20"))).toEqual(comparedWindow(view));
  },
);

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
  ["days=7&period=28d", "expected days or period, not both"],
  ["period=tomorrow", "period: expected one of 7d, 28d, 90d, this-month, last-month"],
  ["compare=never", "compare: expected one of before, year, none"],
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
