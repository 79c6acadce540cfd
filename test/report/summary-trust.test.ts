import { expect, test } from "vitest";
import type { Coverage, ReportData } from "../../src/report/report-data.ts";
import { trustNotice } from "../../src/report/summary.ts";
import { daysOf } from "../../src/usage/days.ts";
import { LAST_DAY, makeReportData, makeSeries, makeTroubledData, WHOLE } from "./make-report-data.ts";

const days = daysOf({ start: "2026-11-11", end: LAST_DAY });
const SMALL = { days: days.length, groups: 2, series: 1 };
const none = { complete: 0, suspect: 0, failed: 0, missing: 0 };

const notice = (data: ReportData) =>
  String(trustNotice(data))
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ([.,;:])/g, "$1")
    .trim();

const withCoverage = (coverage: Partial<Coverage>, other: Partial<ReportData> = {}): ReportData => {
  const data = makeReportData({}, SMALL);
  return { ...data, coverage: { ...data.coverage, ...coverage }, ...other };
};

test("if everything that was due is complete, the notice says so", () => {
  expect(notice(makeReportData({}, SMALL))).toBe(`Everything that was due is here through ${LAST_DAY}.`);
});

test("if some series are not due through the last day, the notice names the last day that is due in all", () => {
  expect(notice(withCoverage({ dueThrough: "2026-11-18" }))).toBe(
    "Everything that was due is here through 2026-11-18. The days after it are not due yet for every series.",
  );
});

test("if no day was due in the series that are still configured, no day is named", () => {
  expect(notice(withCoverage({ dueThrough: undefined }))).toBe("Everything that was due is here.");
});

test("the notice says that the figures do not include the days before a series began", () => {
  const late = makeSeries(
    0,
    days,
    days.map((day) => (day < "2026-11-15" ? undefined : "complete")),
  );
  const { totals } = makeReportData({}, SMALL);
  const data = withCoverage({ series: [late] }, { totals: { ...totals, unreadDays: 4 } });
  expect(notice(data)).toContain("The figures do not include the days before their series began.");
});

test("a day that was read before it was over makes the figures too low, although nothing is missing", () => {
  const { totals } = makeReportData({}, SMALL);
  const data = makeReportData({ totals: { ...totals, ...WHOLE, incompleteDays: 1 } }, SMALL);
  expect(notice(data)).toBe("A day was read before it was over. Too low until it is read again: the headline figures.");
});

test("incomplete days are listed and counted by status, and the figures that are too low are named", () => {
  const text = notice(makeTroubledData());
  expect(text).toContain("4 days are not complete: 2026-11-05, 2026-11-11, 2026-11-19 to 2026-11-20.");
  expect(text).toContain("Too low, as usage of these days is not in them: the headline figures, usage by model.");
  expect(text).toContain("missing, 6 times: never read");
  expect(text).toContain("failed, 3 times:");
  expect(text).toContain("suspect, 3 times:");
});

test("gaps in series that no figure comes from do not cast doubt on the figures", () => {
  const series = [
    makeSeries(
      1,
      days,
      days.map((day) => (day === LAST_DAY ? "missing" : "complete")),
    ),
  ];
  const counts = { ...none, complete: 9, missing: 1 };
  const text = notice(withCoverage({ series, counts, incompleteDays: [LAST_DAY] }));
  expect(text).toContain(`1 day is not complete: ${LAST_DAY}.`);
  expect(text).toContain("come from other series, and are whole");
  expect(text).not.toContain("Too low");
});

test("if nothing was due in the period, the notice says so", () => {
  const series = [
    makeSeries(
      0,
      days,
      days.map(() => undefined),
    ),
  ];
  expect(notice(withCoverage({ series, counts: none }))).toBe(
    "Nothing was due in this period. The jobs read no day of it.",
  );
});

test("if nothing was ever read, the notice says so", () => {
  expect(notice(withCoverage({ seriesCount: 0, counts: none }))).toBe(
    "There are no numbers yet. No job has read any usage.",
  );
});

test("projects that the figures do not include are named", () => {
  const { totals } = makeReportData({}, SMALL);
  const text = notice(makeReportData({ totals: { ...totals, projectsLeftOut: ["<lab>", "old"] } }, SMALL));
  expect(text).toContain("The headline figures do not include &lt;lab&gt;, old:");
});

test("of thousands of projects that the figures do not include the first are named", () => {
  const { totals } = makeReportData({}, SMALL);
  const projectsLeftOut = Array.from({ length: 1_000 }, (_, i) => `customer-${i}`);
  const text = notice(makeReportData({ totals: { ...totals, projectsLeftOut } }, SMALL));
  expect(text).toContain("customer-18, customer-19 and 980 more:");
  expect(text).not.toContain("customer-20");
});
