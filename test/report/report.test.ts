import { createHash } from "node:crypto";
import { performance } from "node:perf_hooks";
import { expect, test } from "vitest";
import { renderReport } from "../../src/report/report.ts";
import type { ReportData } from "../../src/report/report-data.ts";
import { HOSTILE_NAMES } from "./hostile-names.ts";
import { makeHostileData } from "./make-hostile-data.ts";
import { makeGroup, makeReportData, makeTroubledData } from "./make-report-data.ts";

const empty = makeReportData();
const EMPTY: ReportData = {
  ...empty,
  totals: { ...empty.totals, sources: [], metrics: [] },
  change: { ...empty.change, metrics: [] },
  breakdowns: [],
  rankings: [],
  coverage: {
    ...empty.coverage,
    series: [],
    seriesCount: 0,
    counts: { complete: 0, suspect: 0, failed: 0, missing: 0 },
  },
};

const PAGES: readonly [string, ReportData][] = [
  ["an ordinary report", makeReportData()],
  ["a report with gaps and restatements", makeTroubledData()],
  ["a report without any series", EMPTY],
  ["a report with no usage", makeReportData({}, { days: 30, groups: 0, series: 2 })],
  ["a report with one grouping", makeReportData({ breakdowns: makeReportData().breakdowns.slice(1), rankings: [] })],
  ["a report of one day", makeReportData({}, { days: 1, groups: 3, series: 1 })],
  ["a report of 366 days and 60 series", makeTroubledData({ days: 366, groups: 50, series: 60 })],
  ...[0, 8, 16].map((shift): [string, ReportData] => [
    `a report of hostile names from number ${shift} on`,
    makeHostileData(shift),
  ]),
];
const rendered = PAGES.map(([name, data]): [string, string] => [name, renderReport(data)]);

test.each(rendered)("%s contains nothing that a browser would run, load or block", (_, page) => {
  expect(page).not.toMatch(/<(script|img|image|link|iframe|object|embed|base|form|foreignObject)\b/i);
  expect(page).not.toMatch(/<[^>]*\s(style|on\w+|src|xlink:href)=/i);
  expect(page).not.toMatch(/\bhref="(?!#)/);
  expect(page).not.toMatch(/url\((?!#)/);
  expect(page.match(/<style/g)).toHaveLength(1);
  expect(page).not.toMatch(/NaN|Infinity|undefined|\[object/);
  expect(page.isWellFormed()).toBe(true);
});

test.each(rendered)("%s has no id twice, and every id that it refers to", (_, page) => {
  const ids = [...page.matchAll(/<[^>]*\sid="([^"]*)"/g)].map(([, id]) => id);
  expect(ids).toEqual([...new Set(ids)]);
  const referredTo = [...page.matchAll(/(?:href="#|url\(#|aria-labelledby=")([^")]+)/g)].map(([, id]) => id);
  expect(ids).toEqual(expect.arrayContaining(referredTo));
});

test.each(rendered)("%s has its headings in order", (_, page) => {
  const levels = [...page.matchAll(/<h(\d)/g)].map(([, level]) => Number(level));
  expect(levels[0]).toBe(1);
  for (const [i, level] of levels.slice(1).entries()) expect(level - (levels[i] ?? 0)).toBeLessThanOrEqual(1);
});

test("the same data make the same bytes, whatever was rendered before", () => {
  for (const [i, [, data]] of PAGES.slice(0, 3).entries()) expect(renderReport(data)).toBe(rendered[i]?.[1]);
});

test("the content security policy allows the style sheet of the page, and nothing else", () => {
  const page = renderReport(makeReportData());
  const [, style = ""] = /<style>([\s\S]*?)<\/style>/.exec(page) ?? [];
  const hash = createHash("sha256").update(style).digest("base64");
  expect(page).toContain(
    `content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'"`,
  );
  expect(page.indexOf("Content-Security-Policy")).toBeLessThan(page.indexOf("<style>"));
});

test("no name changes the prototype of all objects", () => {
  for (const name of ["__proto__", "constructor"]) renderReport(makeHostileData(HOSTILE_NAMES.indexOf(name)));
  const inherited: string[] = [];
  for (const key in {}) inherited.push(key);
  expect(inherited).toEqual([]);
  expect(Object.keys(Object)).toEqual([]);
});

test("names are in the page as text, uncut", () => {
  const page = renderReport(makeHostileData(0));
  expect(page).toContain("<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>");
  expect(page).toContain("<bdi>&quot;&gt;&lt;img src=x onerror=alert(1)&gt;</bdi>");
  expect(renderReport(makeHostileData(12))).toContain(`<bdi>${"y".repeat(499)}2</bdi>`);
});

test("without any series there is no empty chart or table", () => {
  const page = renderReport(EMPTY);
  expect([...page.matchAll(/<h2[^>]*>([^<]*)/g)].map(([, title]) => title)).toEqual(["Coverage"]);
  expect(page).not.toMatch(/<(svg|table|nav)/);
});

test("two groups whose names are cut to the same text have different labels in a chart", () => {
  const [model] = makeReportData().breakdowns;
  if (model === undefined) throw new Error("expected a breakdown by model");
  const groups = ["a", "b"].map((end, i) => makeGroup(`${"long-model-name-".repeat(3)}${end}`, i, model.days));
  const page = renderReport(makeReportData({ breakdowns: [{ ...model, groups, rest: undefined }] }));
  expect(page).toContain(">long-model-name-long-mode…</text>");
  expect(page).toContain(">long-model-name-long-… (2)</text>");
});

test("if all hours are zero there is no chart of hours, but one of requests", () => {
  const [model] = makeReportData().breakdowns;
  if (model === undefined) throw new Error("expected a breakdown by model");
  const noHours = model.groups.map((group) => ({ ...group, hours: group.hours.map(() => "0.00") }));
  const page = renderReport(makeReportData({ breakdowns: [{ ...model, groups: noHours }] }));
  expect(page).not.toContain("Hours by day and model");
  expect(page).toContain("Requests by day and model");
});

test("days that are not complete and days that are not read are marked in the chart and in the table behind it", () => {
  const page = renderReport(makeTroubledData());
  const [, chart = ""] =
    /<svg class="wide"[^>]*aria-labelledby="hours-by-model"[^>]*>([\s\S]*?)<\/svg>/.exec(page) ?? [];
  // The marks reach from the bottom to the top of the chart, whatever the height of the bar.
  expect(
    chart.match(/<path d="M[\d.]+ \d+l[\d.]+ 0l0 -2\d\dl-[\d.]+ 0Z"[^>]* fill="url\(#hours-by-model-w-p\d\)"/g),
  ).toHaveLength(4 + 3);
  expect(chart).toContain(">not complete</text>");
  expect(chart).toContain(">not read</text>");
  expect(page).toContain(`<time>2026-11-20</time> <b class="flag">not complete</b>`);
  expect(page).toContain(`<time>2026-10-22</time> <b class="flag">not read</b>`);
  expect(renderReport(makeReportData())).not.toMatch(/>not (complete|read)</);
});

test("a report of 90 days, 8 series and 50 groups is smaller than 1.5 MB and rendered within 20 seconds", () => {
  renderReport(makeReportData());
  const data = makeTroubledData({ days: 90, groups: 50, series: 8 });
  const startedMs = performance.now();
  const page = renderReport(data);
  expect(Buffer.byteLength(page)).toBeLessThan(1_500_000);
  // The limit is many times the usual duration, because other work goes on at the machines that test.
  expect(performance.now() - startedMs).toBeLessThan(20_000);
});
