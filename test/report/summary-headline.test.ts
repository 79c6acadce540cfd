import { expect, test } from "vitest";
import type { Totals } from "../../src/report/report-data.ts";
import { summarySection } from "../../src/report/summary.ts";
import { makeReportData } from "./make-report-data.ts";

const { totals } = makeReportData();
const shown = (part: Partial<Totals>) =>
  String(summarySection(makeReportData({ totals: { ...totals, ...part } })).body);

test("each figure that the service sent is shown with its exact value and its change", () => {
  const figures = [
    ...shown({}).matchAll(
      /<dt[^>]*>(.*?)<\/dt><dd><span class="figure">(.*?)<\/span>(?: <data class="exact"[^>]*>(.*?)<\/data>)?\s*<span class="change">(.*?)</g,
    ),
  ];
  expect(figures.map(([, ...figure]) => figure)).toEqual([
    ["Hours", "1,620", "1,619.7242069444444", "+9.4%"],
    ["Requests", "373.4K", "373,381", "-4.3%"],
    ["Tokens in", "0", undefined, "unchanged"],
    ["TTS characters", "9.159M", "9,158,866", "new"],
  ]);
});

test("the table below the figures has every digit", () => {
  expect(shown({})).toContain(
    '<th scope="row">Hours</th><td class="n">1,619.7242069444444</td><td class="n">1,480.25</td>',
  );
});

test("if the service sent no figures, the summary says so", () => {
  expect(shown({ metrics: [] })).toContain("The service sent no figures for this period.");
});

test.each([
  [{ incompleteDays: 1 }, "in this period 1 day is not complete.", true],
  [{ incompleteDaysBefore: 2 }, "in the period before 2 days are not complete.", false],
  [{ unreadDays: 3 }, "in this period 3 days were not read.", false],
  [{ unreadDaysBefore: 1 }, "in the period before 1 day was not read.", false],
  [
    { incompleteDays: 4, unreadDays: 1, unreadDaysBefore: 30 },
    "in this period 4 days are not complete and 1 day was not read; in the period before 30 days were not read.",
    true,
  ],
])("with %j the periods are not compared, and the reason is given", (shortfall, why, isTooLow) => {
  const text = shown(shortfall);
  expect(text).toContain(`Not compared with the period before: ${why}`);
  expect(text).not.toMatch(/class="change"|\d%/);
  expect(text.includes("too low")).toBe(isTooLow);
});

test("what the month is expected to amount to stands below the figures, with its interval", () => {
  const forecast = [
    { month: "2026-03-01", metric: "hours", forecast: "2150.123456", low: "2000.9", high: "2300.2" },
    { month: "2026-03-01", metric: "requests", forecast: "500000", low: "480000", high: "520000" },
  ] as const;
  expect(String(summarySection(makeReportData({ forecast })).body)).toContain(
    "Estimated for all of 2026-03, from the usage so far: <b>Hours</b> 2,150 (2,001 to 2,300), <b>Requests</b> 500K (480K to 520K).",
  );
  expect(shown({})).not.toContain("Estimated");
  const leftOut = makeReportData({ forecast: "left out" });
  expect(String(summarySection(leftOut).body)).toContain("The month is not estimated here");
});
