// The headline figures of a report.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { readReportData } from "../../../src/db/report/report.ts";
import type { ReportData } from "../../../src/report/report-data.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, newProject } from "../stored-usage.ts";
import { DIARIZED, forgetAll, storeSeries } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const now = new Date("2026-03-20T08:00:00Z");

beforeEach(() => forgetAll(db));

/** The report of yesterday and the day before yesterday. */
function report(): Promise<ReportData> {
  return readReportData(db, { start: back(2), end: back(1) }, now);
}

function amounts({ totals }: ReportData, metric: string): unknown {
  const { amount, before } = totals.metrics.find((one) => one.metric === metric) ?? {};
  return [amount, before];
}

test("a report has its period, and the period that it is compared with", async () => {
  expect(await report()).toMatchObject({
    period: { start: back(2), end: back(1) },
    before: { start: back(4), end: back(3) },
    madeAt: now,
  });
});

test("a report of a whole calendar month compares it with the calendar month before", async () => {
  expect(await readReportData(db, { start: "2026-10-01", end: "2026-10-31" }, now)).toMatchObject({
    before: { start: "2026-09-01", end: "2026-09-30" },
  });
});

test("the amounts of the period and of the period before are those of bi.usage_total", async () => {
  const projects = [newProject(), newProject()];
  const usage = (factor: number) =>
    Object.fromEntries(
      [0, 1, 2, 3, 4, 5].map((days) => [
        back(days),
        [[null, { hours: `${days * factor}.25`, requests: `${10 ** days}`, tokens_in: "3" }] as const],
      ]),
    );
  await storeSeries(
    db,
    projects.map((project, i) => ({ project, grouping: "none", usage: usage(i + 1) })),
  );

  const { totals } = await report();
  const { rows } = await sql`
    select trim_scale(sum(hours) filter (where usage_date >= ${back(2)}::date))::text as hours,
      trim_scale(sum(hours) filter (where usage_date < ${back(2)}::date))::text as hours_before,
      sum(requests) filter (where usage_date >= ${back(2)}::date)::text as requests,
      sum(requests) filter (where usage_date < ${back(2)}::date)::text as requests_before
    from bi.usage_total where usage_date between ${back(4)}::date and ${back(1)}::date
  `.execute(db);
  const by = Object.fromEntries(totals.metrics.map(({ metric, amount, before }) => [metric, { amount, before }]));
  expect(rows).toEqual([
    {
      hours: by.hours?.amount,
      hours_before: by.hours?.before,
      requests: by.requests?.amount,
      requests_before: by.requests?.before,
    },
  ]);
  expect(by).toEqual({
    hours: { amount: "10", before: "22" },
    tokens_in: { amount: "12", before: "12" },
    tokens_out: { amount: null, before: null },
    tts_characters: { amount: null, before: null },
    requests: { amount: "220", before: "22000" },
  });
});

test("no digit of an amount is lost", async () => {
  const [yesterday, dayBefore] = [back(1), back(2)];
  await storeSeries(db, [
    {
      project: newProject(),
      grouping: "none",
      usage: {
        [yesterday]: [[null, { requests: "9007199254740993", hours: "0.1", tts_characters: "1e30" }]],
        [dayBefore]: [[null, { requests: "9007199254740993", hours: "0.2", tts_characters: "1" }]],
      },
    },
  ]);
  const data = await report();
  expect(amounts(data, "requests")).toEqual(["18014398509481986", null]);
  expect(amounts(data, "hours")).toEqual(["0.3", null]);
  expect(amounts(data, "tts_characters")).toEqual(["1000000000000000000000000000001", null]);
});

test("the amounts of a project without a total are the sum over a grouping that counts each request once", async () => {
  const [one, other] = [newProject(), newProject()];
  const day = back(1);
  const split = (values: readonly string[]) => ({ [day]: values.map((value) => [value, { requests: "1" }] as const) });
  await storeSeries(db, [
    { project: one, grouping: "none", usage: { [day]: [[null, { requests: "100" }]] } },
    { project: one, grouping: "model", usage: split(["a", "b"]) },
    { project: other, grouping: "tags", usage: split(["a", "b", "c", "d", "e"]) },
    { project: other, grouping: "model", usage: split(["a", "b", "c"]) },
    { project: other, grouping: "accessor", usage: split(["a", "b", "c", "d"]) },
  ]);
  const data = await report();
  expect(amounts(data, "requests")).toEqual(["103", null]);
  expect(data.totals.sources).toHaveLength(2);
  expect(data.totals.sources).toEqual(
    expect.arrayContaining([
      { project: one.name, grouping: "none" },
      { project: other.name, grouping: "model" },
    ]),
  );
});

test("a filtered series never counts, and neither does one whose filter name has another filter now", async () => {
  const [project, narrow] = [newProject(), newProject()];
  const usage = { [back(1)]: [[null, { requests: "7" }]] } as const;
  const replaced = { name: "all", features: { punctuate: "true" }, dimensions: {} };
  await storeSeries(db, [{ project, grouping: "none", filter: replaced, usage }]);
  await storeSeries(db, [
    { project, grouping: "none", usage },
    { project, grouping: "none", filter: DIARIZED, usage },
    { project: narrow, grouping: "none", filter: DIARIZED, usage },
  ]);
  const data = await report();
  expect(amounts(data, "requests")).toEqual(["7", null]);
  expect(data.totals).toMatchObject({
    sources: [{ project: project.name, grouping: "none" }],
    projectsLeftOut: [narrow.name],
  });
  expect(data.coverage.series).toHaveLength(3);
});

test("a project that is no longer configured is named as left out, and not in the amounts", async () => {
  const [project, gone] = [newProject(), newProject()];
  const usage = { [back(1)]: [[null, { requests: "7" }]] } as const;
  await storeSeries(db, [{ project: gone, grouping: "none", usage }]);
  await storeSeries(db, [{ project, grouping: "none", usage }]);
  const data = await report();
  expect(amounts(data, "requests")).toEqual(["7", null]);
  expect(data.totals.projectsLeftOut).toEqual([gone.name]);
});

test("due days that are missing and days that no job reads are counted separately", async () => {
  const due = { start: back(3), end: back(2) };
  const usage = { [back(3)]: [[null, { requests: "7" }]] } as const;
  await storeSeries(db, [{ project: newProject(), grouping: "none", due, usage }]);
  expect((await report()).totals).toMatchObject({
    lackingDays: [back(2), back(1)],
    incompleteDays: 1,
    incompleteDaysBefore: 0,
    unreadDays: 1,
    unreadDaysBefore: 1,
  });
});

test("a day that was read before it was over counts as incomplete", async () => {
  await storeSeries(db, [
    { project: newProject(), grouping: "none", usage: { [back(0)]: [[null, { requests: "7" }]] } },
  ]);
  const data = await readReportData(db, { start: back(0), end: back(0) }, now);
  expect(data.totals).toMatchObject({ incompleteDays: 1, unreadDays: 0 });
  expect(data.coverage.counts).toMatchObject({ complete: 1 });
});

test("the report of a database without usage has no amounts and no sections", async () => {
  const data = await report();
  expect(data.totals).toMatchObject({ sources: [], projectsLeftOut: [], incompleteDays: 0 });
  expect(data.totals.metrics.map(({ amount }) => amount)).toEqual([null, null, null, null, null]);
  expect(data).toMatchObject({
    breakdowns: [],
    rankings: [],
    coverage: { days: [back(2), back(1)], series: [], seriesCount: 0, gaps: [], gapsLeftOut: 0 },
    restatements: { byDaysLate: [], largest: [] },
  });
});
