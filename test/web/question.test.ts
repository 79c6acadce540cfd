import { expect, test } from "vitest";
import { comparedWindow, fixedView, type View, viewOf, viewQuery } from "../../src/web/question.ts";

const TODAY = "2026-03-10";

function viewAt(query: string, today = TODAY): View {
  return viewOf("run", new URLSearchParams(query), today);
}

test.each([
  ["", "2026-02-10", "2026-03-09"],
  ["period=&from=&to=&project=", "2026-02-10", "2026-03-09"],
  ["period=7d", "2026-03-03", "2026-03-09"],
  ["period=this-month", "2026-03-01", "2026-03-09"],
  ["period=last-month", "2026-02-01", "2026-02-28"],
  ["from=2026-03-01&to=2026-03-02", "2026-03-01", "2026-03-02"],
  ["from=2026-03-10&to=2026-03-10", "2026-03-10", "2026-03-10"],
  ["to=2026-02-28&from=2025-02-28&period=", "2025-02-28", "2026-02-28"],
])("%j asks for %s to %s", (query, start, end) => {
  expect(viewAt(query).period).toMatchObject({ start, end });
});

test("on the first day of a month, this month is that day", () => {
  expect(viewAt("period=this-month", "2026-03-01").period).toMatchObject({ start: "2026-03-01", end: "2026-03-01" });
});

test("the form of a named period also sends its name, and dates win over it", () => {
  expect(viewAt("period=7d&from=2026-03-01&to=2026-03-02").period).toMatchObject({
    start: "2026-03-01",
    name: undefined,
  });
});

test.each(["", "?period=7d", "?from=2026-03-01&to=2026-03-02&compare=year&project=a+%26+b", "?compare=none&id=1"])(
  "the view of %j has that query again",
  (query) => {
    expect(viewQuery(viewAt(query))).toBe(query);
  },
);

test("a changed view keeps what is not changed, and a default is left out", () => {
  const view = viewAt("period=28d&project=p");
  expect(viewQuery(view, { compare: "none" })).toBe("?compare=none&project=p");
  expect(viewQuery(view, { project: undefined })).toBe("");
});

test.each(["period=this-month", "period=last-month&compare=year", "period=7d", ""])(
  "the days of %j as dates are compared with the same days as those by name",
  (query) => {
    const view = viewAt(query);
    const fixed = viewQuery(fixedView(view));
    expect(fixed).toContain(`from=${view.period.start}&to=${view.period.end}`);
    expect(comparedWindow(viewAt(fixed.slice(1), "2026-04-20"))).toEqual(comparedWindow(view));
  },
);

test("it is compared with nothing if the query says so", () => {
  expect(comparedWindow(viewAt("compare=none"))).toBeUndefined();
});

test.each([
  ["period=7d&period=28d", "expected each parameter once"],
  ["period=tomorrow", 'period: expected one of 7d, 28d, 90d, this-month, last-month; got "tomorrow"'],
  ["compare=never", 'compare: expected one of before, year, none; got "never"'],
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
  ["days=7", 'unknown parameter "days"; there are period, from, to, compare, project, id'],
])("%j is refused: %s", (query, error) => {
  expect(() => viewAt(query)).toThrow(error);
});
