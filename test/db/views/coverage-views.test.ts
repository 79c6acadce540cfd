import { sql } from "kysely";
import { expect, test } from "vitest";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { markDue, registerSeries } from "../../../src/db/usage/stored-series.ts";
import type { Day } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, newSeries, slice, store, view } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

const HOUR_MS = 60 * 60 * 1_000;
const PAST = new Date(Date.now() - HOUR_MS);
const FUTURE = new Date(Date.now() + HOUR_MS);

async function setNextDue(seriesId: number, at: Date): Promise<void> {
  await sql`update usage_export.series set next_due_at = ${at} where series_id = ${seriesId}`.execute(db);
}

async function due(seriesId: number, from: Day, through: Day, nextDueAt: Date): Promise<void> {
  await markDue(db, [seriesId], { first: from, oldest: { start: from, end: through }, through });
  await setNextDue(seriesId, nextDueAt);
}

async function fail(seriesId: number, days: readonly Day[], reason: string): Promise<void> {
  await recordFailure(db, { seriesId, days, reason, fetchNo: await nextFetchNo(db) });
}

async function statuses(project: Parameters<typeof view>[2]): Promise<Record<Day, unknown>> {
  const rows = await view(db, "coverage", project);
  return Object.fromEntries(rows.map((row) => [String(row.usage_date), row.status]));
}

test("bi.coverage shows the status of a slice, when it was read and how many rows it has", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await store(db, seriesId, [slice(back(1), { listen: "1", speak: "2" })]);
  expect(await view(db, "coverage", project)).toEqual([
    {
      project_id: project.id,
      project: project.name,
      grouping: "endpoint",
      filter: "all",
      usage_date: back(1),
      status: "complete",
      finality: "settling",
      fetched_at: expect.any(Date),
      rows: 2,
      error: null,
      unfiltered: true,
      conditions: "{}",
      active: true,
      source: "usage",
    },
  ]);
});

test("yesterday is missing from the next scheduled time on, and not before", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await store(db, seriesId, [slice(back(2), {})]);
  await due(seriesId, back(2), back(2), FUTURE);
  expect(await statuses(project)).toEqual({ [back(2)]: "complete" });
  await setNextDue(seriesId, PAST);
  expect(await statuses(project)).toEqual({ [back(2)]: "complete", [back(1)]: "missing" });
});

test("a series that no run has planned yet has no missing days", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await setNextDue(seriesId, PAST);
  expect(await view(db, "coverage", project)).toEqual([]);
  expect(await view(db, "freshness", project)).toEqual([]);
});

test("today is never missing", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await due(seriesId, back(1), back(1), PAST);
  await store(db, seriesId, [slice(back(1), {})]);
  expect(await statuses(project)).toEqual({ [back(1)]: "complete" });
});

test("a missing or failed day is settling while it is in the window, and final afterwards", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await due(seriesId, back(4), back(1), FUTURE);
  await fail(seriesId, [back(3), back(1)], "down");
  const rows = await view(db, "coverage", project);
  expect(rows.map((row) => [row.usage_date, row.status, row.finality])).toEqual(
    [
      [back(4), "missing", "final"],
      [back(3), "failed", "final"],
      [back(2), "missing", "settling"],
      [back(1), "failed", "settling"],
    ].sort(),
  );
});

test("a day that was read before it ended is open, even if later readings fail", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await store(db, seriesId, [slice(back(0), { listen: "1" })]);
  await fail(seriesId, [back(0)], "down");
  expect(await view(db, "coverage", project)).toMatchObject([{ status: "failed", finality: "open", rows: 1 }]);
});

const DAY_MS = 24 * HOUR_MS;
/** For an answer that was requested a day ago and is stored now. */
const askedYesterday = () => ({ askedMs: performance.now() - DAY_MS });

test("a day whose reading began before it ended is due again, however late the answer came", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await due(seriesId, back(3), back(1), FUTURE);
  await store(db, seriesId, [slice(back(2), {}), slice(back(1), { listen: "1" })], askedYesterday());
  expect(await view(db, "coverage", project)).toMatchObject([
    { usage_date: back(3), status: "missing", error: null },
    { usage_date: back(2), status: "complete" },
    { usage_date: back(1), status: "missing", finality: "open", rows: 1, error: expect.stringMatching(/^read before/) },
  ]);
  expect(await view(db, "coverage_gaps", project)).toMatchObject([
    { from_date: back(3), to_date: back(3), error: null },
    { from_date: back(1), to_date: back(1), error: expect.stringMatching(/^read before/) },
  ]);
  await store(db, seriesId, [slice(back(3), {})]);
  expect(await view(db, "freshness", project)).toMatchObject([{ fresh_through: back(2) }]);

  await store(db, seriesId, [slice(back(1), { listen: "1" })]);
  expect(await statuses(project)).toEqual({ [back(3)]: "complete", [back(2)]: "complete", [back(1)]: "complete" });
});

test("without a window, days that were read too early are due again: the last one at the next scheduled time, others at once", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint");
  await store(db, seriesId, [slice(back(2), { listen: "1" }), slice(back(1), { listen: "1" })], {
    ...{ serviceChoosesDays: true, askedMs: performance.now() - 2 * DAY_MS },
  });
  await setNextDue(seriesId, FUTURE);
  expect(await statuses(project)).toEqual({ [back(2)]: "missing", [back(1)]: "complete" });
  await setNextDue(seriesId, PAST);
  expect(await statuses(project)).toEqual({ [back(2)]: "missing", [back(1)]: "missing" });
});

test("an open day of a series that is no longer configured is not due again", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await due(seriesId, back(1), back(1), FUTURE);
  await store(db, seriesId, [slice(back(1), { listen: "1" })], askedYesterday());
  await registerSeries(db, []);
  expect(await view(db, "coverage", project)).toMatchObject([{ status: "complete", finality: "open" }]);
});

test("a series that is no longer configured shows its complete days, and no failures or gaps", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await due(seriesId, back(3), back(1), PAST);
  await store(db, seriesId, [slice(back(3), { listen: "1" })]);
  await fail(seriesId, [back(2)], "the service is away");
  expect(Object.values(await statuses(project)).sort()).toEqual(["complete", "failed", "missing"]);

  await registerSeries(db, []);
  expect(await statuses(project)).toEqual({ [back(3)]: "complete" });
});
