import { expect, test } from "vitest";
import { fixedView, type View, viewOf, viewQuery } from "../../src/web/url.ts";

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

test("the current month has the whole days so far or, on its first day, that day", () => {
  for (const today of ["2026-03-01", "2026-03-02"])
    expect(viewAt("period=this-month", today).period).toMatchObject({ start: "2026-03-01", end: "2026-03-01" });
});

test("a named period keeps its name if the form sends its dates unchanged", () => {
  expect(viewAt("period=7d&from=2026-03-03&to=2026-03-09").period).toMatchObject({ name: "7d" });
  const changed = viewAt("period=7d&from=2026-03-01&to=2026-03-02").period;
  expect(changed).toMatchObject({ start: "2026-03-01", name: undefined });
});

test.each(["", "?period=7d", "?from=2026-03-01&to=2026-03-02&project=a+%26+b", "?period=90d&id=1"])(
  "viewQuery writes %j as it was read",
  (query) => {
    expect(viewQuery(viewAt(query))).toBe(query);
  },
);

test("the query of a changed view keeps what was not changed, except defaults", () => {
  const view = viewAt("period=28d&project=p");
  expect(viewQuery(view, { pageParameters: { id: "1" } })).toBe("?project=p&id=1");
  expect(viewQuery(view, { project: undefined })).toBe("");
});

test.each(["period=this-month", "period=last-month", "period=7d", ""])(
  "the link that names the days of %j shows the same days a month later",
  (query) => {
    const { start, end } = viewAt(query).period;
    const fixed = viewQuery(fixedView(viewAt(query)));
    expect(viewAt(fixed.slice(1), "2026-04-20").period).toEqual({ start, end, name: undefined });
  },
);

test.each([
  ["period=tomorrow", 'period: Invalid option: expected one of "7d"|"28d"|"90d"|"this-month"|"last-month"'],
  ["from=2026-03-01", "expected both from and to"],
  ["to=2026-03-01&from=", "expected both from and to"],
  ["from=2026-02-30&to=2026-03-02", "from: expected a day that exists, as YYYY-MM-DD"],
  ["from=2026-03-01&to=tomorrow", "to: expected a day that exists, as YYYY-MM-DD"],
  ["from=2026-03-01&to=2026-03-11", "to: expected 2026-03-10 or before, which is today in UTC; got 2026-03-11"],
  ["days=7", 'Unrecognized key: "days"'],
])("%j is refused: %s", (query, error) => {
  expect(() => viewAt(query)).toThrow(error);
});
