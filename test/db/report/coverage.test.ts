// A report's coverage: which days of each series are complete, and which are missing.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { readReportData } from "../../../src/db/report/report.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import type { Coverage } from "../../../src/report/report-data.ts";
import type { Day } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, newProject } from "../stored-usage.ts";
import { DIARIZED, forgetAll, storeSeries, storeUsage, type Usage } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const due = { start: back(3), end: back(1) };

beforeEach(() => forgetAll(db));

async function coverage(start = back(3), end = back(1)): Promise<Coverage> {
  return (await readReportData(db, { start, end }, new Date(0))).coverage;
}

/** Usage of the total with 1 request on each of these days, counted back from today. */
function read(...days: readonly number[]): Usage {
  return Object.fromEntries(days.map((day) => [back(day), [[null, { requests: "1" }]]]));
}

async function fail(seriesId: number, days: readonly Day[], reason: string): Promise<void> {
  await recordFailure(db, { seriesId, days, reason, fetchNo: await nextFetchNo(db) });
}

test("each day of a series has its status, and the statuses are counted", async () => {
  const project = newProject();
  const [seriesId = 0] = await storeSeries(db, [
    { project, grouping: "none", due: { start: back(5), end: back(1) }, usage: read(5, 4) },
  ]);
  await storeUsage(db, seriesId, "none", { [back(4)]: [] });
  await fail(seriesId, [back(3)], "the service is away");
  const { series, counts } = await coverage(back(6), back(1));
  expect(series).toEqual([
    {
      project: project.name,
      projectId: project.id,
      grouping: "none",
      filter: "all",
      statuses: [undefined, "complete", "suspect", "failed", "missing", "missing"],
      freshThrough: back(4),
      dueThrough: back(1),
      fetchedAt: expect.any(Date),
    },
  ]);
  expect(counts).toEqual({ complete: 1, suspect: 1, failed: 1, missing: 2 });
});

test("days outside of the period do not count, but the fresh-through day considers all days", async () => {
  await storeSeries(db, [
    { project: newProject(), grouping: "none", due: { start: back(9), end: back(1) }, usage: read(9, 3, 2, 1) },
  ]);
  const { series, counts, gaps } = await coverage();
  expect(counts).toEqual({ complete: 3, suspect: 0, failed: 0, missing: 0 });
  expect(gaps).toEqual([]);
  expect(series).toMatchObject([{ freshThrough: back(9) }]);
});

test("a series that was never read has no fresh-through day", async () => {
  await storeSeries(db, [{ project: newProject(), grouping: "none", due }]);
  expect((await coverage()).series).toMatchObject([{ freshThrough: null, dueThrough: back(1), fetchedAt: null }]);
});

test("a configured series is listed even if none of its days was due or read", async () => {
  await storeSeries(db, [{ project: newProject(), grouping: "none" }]);
  expect((await coverage()).series).toMatchObject([
    { statuses: [undefined, undefined, undefined], freshThrough: null, dueThrough: null, fetchedAt: null },
  ]);
});

test("a series whose answers carry no dates, so that no day is due, has the time of its last reading", async () => {
  await storeSeries(db, [{ project: newProject(), grouping: "none", usage: read(2) }]);
  expect((await coverage()).series).toMatchObject([
    { statuses: [undefined, "complete", undefined], freshThrough: null, dueThrough: null, fetchedAt: expect.any(Date) },
  ]);
});

test("the worst series come first, then by name", async () => {
  const [a, b] = [
    { ...newProject(), name: "a" },
    { ...newProject(), name: "b" },
  ];
  const [, , , suspect = 0, failed = 0] = await storeSeries(db, [
    { project: b, grouping: "none", due, usage: read(3, 2, 1) },
    { project: a, grouping: "none", due, usage: read(3, 2, 1) },
    { project: a, grouping: "none", filter: DIARIZED, due, usage: read(3) },
    { project: b, grouping: "model", due, usage: asModel(3, 2, 1) },
    { project: b, grouping: "endpoint", due, usage: asModel(3, 2, 1) },
  ]);
  await storeUsage(db, suspect, "model", { [back(3)]: [], [back(2)]: [], [back(1)]: [] });
  await fail(failed, [back(2)], "away");
  const { series } = await coverage();
  expect(series.map(({ project, grouping, filter }) => `${project} ${grouping} ${filter}`)).toEqual([
    "a none diarized",
    "b endpoint all",
    "b model all",
    "a none all",
    "b none all",
  ]);
});

function asModel(...days: readonly number[]): Usage {
  return Object.fromEntries(days.map((day) => [back(day), [["nova-3", { requests: "1" }]]]));
}

/** Series of one project, each with a filter of its own. All their days are due, and none is read. */
function many(count: number) {
  const project = newProject();
  return Array.from({ length: count }, (_, i) => ({
    project,
    grouping: "none" as const,
    filter: { name: `filter ${i}`, features: { diarize: String(i) }, dimensions: {} },
    due,
  }));
}

test("only sixty series are listed, and the days of all are counted", async () => {
  await storeSeries(db, many(62));
  const { series, seriesCount, counts, gaps, gapsLeftOut } = await coverage();
  expect({ shown: series.length, seriesCount, counts }).toEqual({
    shown: 60,
    seriesCount: 62,
    counts: { complete: 0, suspect: 0, failed: 0, missing: 186 },
  });
  expect({ gaps: gaps.length, gapsLeftOut }).toEqual({ gaps: 50, gapsLeftOut: 12 });
});

test("a day that is missing only in a series left out of the list is not complete", async () => {
  const usage = (i: number) => (i === 60 ? read(3, 2) : read(1));
  await storeSeries(
    db,
    many(61).map((one, i) => ({ ...one, usage: usage(i) })),
  );
  expect(await coverage()).toMatchObject({ seriesCount: 61, incompleteDays: [back(3), back(2), back(1)] });
});

test("the due-through day is the newest that is due in every series that is still configured", async () => {
  const [gone, short, whole] = [newProject(), newProject(), newProject()];
  await storeSeries(db, [{ project: gone, grouping: "none", due, usage: read(3) }]);
  await storeSeries(db, [
    { project: short, grouping: "none", due: { start: back(3), end: back(2) }, usage: read(3, 2) },
    { project: whole, grouping: "none", due, usage: read(3, 2, 1) },
  ]);
  expect(await coverage()).toMatchObject({ dueThrough: back(2), incompleteDays: [] });
});

test("gaps are ranges of days with one status, within the period, the newest first, with the newest reason", async () => {
  const project = newProject();
  const [seriesId = 0] = await storeSeries(db, [
    { project, grouping: "none", due: { start: back(9), end: back(1) }, usage: read(1) },
  ]);
  await storeUsage(db, seriesId, "none", { [back(1)]: [] });
  await fail(seriesId, [back(7), back(6)], "oldest");
  await fail(seriesId, [back(4), back(3)], "older");
  await fail(seriesId, [back(3)], "newer");
  const { gaps, gapsLeftOut } = await coverage(back(6), back(1));
  const name = { project: project.name, projectId: project.id, grouping: "none", filter: "all" };
  expect(gaps).toEqual([
    { ...name, status: "suspect", start: back(1), end: back(1), error: expect.stringMatching(/no rows for this day/) },
    { ...name, status: "missing", start: back(2), end: back(2), error: null },
    { ...name, status: "failed", start: back(4), end: back(3), error: "newer" },
    { ...name, status: "missing", start: back(5), end: back(5), error: null },
    { ...name, status: "failed", start: back(6), end: back(6), error: "oldest" },
  ]);
  expect(gapsLeftOut).toBe(0);
});

test("a series that is no longer configured shows its complete days, and none is missing", async () => {
  const [gone, older] = [newProject(), newProject()];
  await storeSeries(db, [
    { project: gone, grouping: "none", due, usage: read(3) },
    { project: older, grouping: "none", usage: read(9) },
  ]);
  await storeSeries(db, []);
  expect(await coverage()).toMatchObject({
    series: [
      {
        project: gone.name,
        statuses: ["complete", undefined, undefined],
        freshThrough: null,
        dueThrough: null,
        fetchedAt: expect.any(Date),
      },
    ],
    counts: { complete: 1, suspect: 0, failed: 0, missing: 0 },
  });
});

test("names and reasons are returned unchanged", async () => {
  const hostile = `<script>"'&\u202e🎉${"x".repeat(500)}`;
  const project = { ...newProject(), name: hostile };
  const filter = { ...DIARIZED, name: hostile };
  const [seriesId = 0] = await storeSeries(db, [{ project, grouping: "none", filter, due, usage: read(3, 2, 1) }]);
  await fail(seriesId, [back(1)], hostile);
  const { series, gaps } = await coverage();
  expect(series).toMatchObject([{ project: hostile, filter: hostile }]);
  expect(gaps).toMatchObject([{ project: hostile, filter: hostile, error: hostile }]);
});

test("the counts are those of bi.coverage", async () => {
  const [first = 0] = await storeSeries(db, [
    { project: newProject(), grouping: "none", due, usage: read(3, 1) },
    { project: newProject(), grouping: "none", due: { start: back(9), end: back(2) }, usage: read(9, 8, 2) },
  ]);
  await fail(first, [back(2)], "away");
  const { rows } = await sql<{ status: string; slices: number }>`
    select status, count(*)::integer as slices from bi.coverage
    where usage_date between ${back(3)}::date and ${back(1)}::date group by status
  `.execute(db);
  const counted = Object.fromEntries(rows.map(({ status, slices }) => [status, slices]));
  expect((await coverage()).counts).toEqual({ complete: 0, suspect: 0, failed: 0, missing: 0, ...counted });
});
