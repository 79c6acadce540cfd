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

test("all that was due is here", () => {
  expect(notice(makeReportData({}, SMALL))).toBe(`Everything that was due is here through ${LAST_DAY}.`);
});

test("here through the day by which every series was due, and what is not due yet is said", () => {
  expect(notice(withCoverage({ dueThrough: "2026-11-18" }))).toBe(
    "Everything that was due is here through 2026-11-18. The days after it are not due yet for every series.",
  );
});

test("where nothing that is read today was due, no day is named", () => {
  expect(notice(withCoverage({ dueThrough: undefined }))).toBe("Everything that was due is here.");
});

test("days before a series began are said to be left out of the figures", () => {
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

test("what is not complete is counted by day, named by status, and the figures that are too low are listed", () => {
  const said = notice(makeTroubledData());
  expect(said).toContain("4 days are not complete: 2026-11-05, 2026-11-11, 2026-11-19 to 2026-11-20.");
  expect(said).toContain("Too low, as usage of these days is not in them: the headline figures, usage by model.");
  expect(said).toContain("missing, 6 times: never read");
  expect(said).toContain("failed, 3 times:");
  expect(said).toContain("suspect, 3 times:");
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
  const said = notice(withCoverage({ series, counts, incompleteDays: [LAST_DAY] }));
  expect(said).toContain(`1 day is not complete: ${LAST_DAY}.`);
  expect(said).toContain("come from other series, and are whole");
  expect(said).not.toContain("Too low");
});

test("nothing was due in the period", () => {
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

test("nothing was read ever", () => {
  expect(notice(withCoverage({ series: [], counts: none }))).toBe(
    "There are no numbers yet. No job has read any usage.",
  );
});

test("projects that the figures do not include are named", () => {
  const { totals } = makeReportData({}, SMALL);
  const said = notice(makeReportData({ totals: { ...totals, projectsLeftOut: ["<lab>", "old"] } }, SMALL));
  expect(said).toContain("The headline figures do not include &lt;lab&gt;, old:");
});
