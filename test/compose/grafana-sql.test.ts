import { expect, test } from "vitest";
import { asSent } from "./grafana-sql.ts";

const RANGE = { from: new Date("2026-03-01T00:00:00Z"), to: new Date("2026-03-17T12:30:00.250Z") };
const VALUES = { project: ["p1", "O'Brien"], series: `["p1","none","it's"]`, nothing: [], empty: "" };

const variable = (inner: string): string => `\${${inner}}`;

test.each([
  ["$__timeFilter(usage_date)", "usage_date BETWEEN '2026-03-01T00:00:00Z' AND '2026-03-17T12:30:00.250Z'"],
  ["$__timeFrom()::date", "'2026-03-01T00:00:00Z'::date"],
  ["$__timeTo()", "'2026-03-17T12:30:00.250Z'"],
  [`array[${variable("project:sqlstring")}]`, "array['p1','O''Brien']"],
  [`${variable("series:sqlstring")}::json`, `'["p1","none","it''s"]'::json`],
  [`array[${variable("nothing:sqlstring")}]`, "array[]"],
  [`nullif(${variable("empty:sqlstring")}, '')`, "nullif('', '')"],
])("%s is sent as %s", (rawSql, sent) => {
  expect(asSent(rawSql, RANGE, VALUES)).toBe(sent);
});

test.each([
  ["a macro that Grafana does not have", "$__timefilter(usage_date)"],
  ["a macro without its argument", "$__timeFilter()"],
  ["a variable that the dashboard does not have", variable("projects:sqlstring")],
  ["a variable without a format, which Grafana quotes only if it may have several values", variable("project")],
  ["a variable in a format that quotes nothing", variable("project:csv")],
  ["a variable without braces", "$project"],
  ["a variable in double brackets", "[[project]]"],
])("%s is refused", (_, rawSql) => {
  expect(() => asSent(rawSql, RANGE, VALUES)).toThrow();
});
