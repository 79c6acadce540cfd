// Which slices are read again, and the statuses of slices.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { inTransaction, queryOn } from "../../../src/db/connection/transaction.ts";
import { dueSlices, settledSlices, sliceStatuses } from "../../../src/db/usage/due-slices.ts";
import { newestGaps } from "../../../src/facts/coverage.ts";
import { isDueForRetry, RETRIED_CODES } from "../../../src/usage/backfill.ts";
import { seriesKey } from "../../../src/usage/series.ts";
import type { FilterDoubt } from "../../../src/usage/slice-decision.ts";
import { testDatabase } from "../../support/database.ts";
import { DIARIZED } from "../reported-usage.ts";
import {
  configured,
  daysBack,
  fail,
  makeDoubtsAnHourOlder,
  newProject,
  newSeries,
  register,
  setDue,
  store,
} from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

/** Stores the last four days of a series. With a window of two days, the two oldest are outside of it. */
async function readDays(part: { readonly windowDays?: number } = { windowDays: 2 }) {
  const usage = Object.fromEntries([4, 3, 2, 1].map((day) => [back(day), { listen: "5" }]));
  const one = await newSeries(db, "endpoint", { ...part, usage });
  await setDue(db, [one.seriesId], back(4), back(1));
  return one;
}

const dueOf = (seriesId: number) => inTransaction(db, (tx) => dueSlices(tx, [seriesId]));

test("a suspect day before the window is due until it is confirmed, and one in the window is not", async () => {
  const { seriesId } = await readDays();
  await store(db, seriesId, { [back(4)]: {}, [back(2)]: {} });
  expect(await dueOf(seriesId)).toMatchObject([
    { day: back(4), status: "suspect", attemptedAt: expect.any(Date), since: expect.any(Date) },
  ]);
  await makeDoubtsAnHourOlder(db);
  await store(db, seriesId, { [back(4)]: {} });
  expect(await dueOf(seriesId)).toEqual([]);
});

test("without a window, a suspect day is not due, because no day can be requested again", async () => {
  const { seriesId } = await readDays({});
  await store(db, seriesId, { [back(4)]: {} });
  expect(await dueOf(seriesId)).toEqual([]);
});

test("a day that is suspect because the service ignores the filter is not read again", async () => {
  const { seriesId } = await readDays();
  const doubt: FilterDoubt = { kind: "filter-ignored", reason: "ignored", isConfirmable: false };
  await store(db, seriesId, { [back(4)]: { listen: "9" } }, { doubt });
  expect(await dueOf(seriesId)).toEqual([]);
});

test("a day that failed while the database's clock was two days ahead is due at once when the clock is right again", async () => {
  const { seriesId } = await readDays();
  await fail(db, seriesId, [back(2)], { code: "unauthorized" });
  const startedAt = new Date(Date.now() - 60_000);
  const isDue = async () => (await dueOf(seriesId)).map((slice) => isDueForRetry(slice, new Date()));
  const settled = () =>
    settledSlices(
      db,
      [seriesId],
      { start: back(2), end: back(2) },
      { fetchNo: 1e9, startedAt, retriedCodes: RETRIED_CODES },
    );
  expect([await isDue(), await settled()]).toMatchObject([[false], [{ status: "failed" }]]);

  await sql`
    update usage_export.slice set attempted_at = attempted_at + interval '2 days' where series_id = ${seriesId} and status = 'failed'
  `.execute(db);
  expect([await isDue(), await settled()]).toEqual([[true], []]);
});

test("each series has the status of each of its slices in the range, also if it is no longer configured", async () => {
  const project = newProject();
  const all = [
    configured(project, "none"),
    configured(project, "model"),
    configured(project, "model", { filter: DIARIZED }),
    configured(newProject(), "model"),
  ];
  const [none, model, filtered, other] = await register(db, ...all);
  const days = ["2026-03-14", "2026-03-15", "2026-03-16", "2026-03-18"];
  await store(db, none ?? 0, Object.fromEntries(days.map((day) => [day, { requests: "1" }])));
  await store(db, none ?? 0, { "2026-03-16": {} });
  await fail(db, none ?? 0, ["2026-03-17"]);
  await store(db, filtered ?? 0, { "2026-03-16": {} });
  await store(db, other ?? 0, { "2026-03-17": {} });
  await fail(db, model ?? 0, ["2026-03-14"]);
  await register(db);

  const series = all.map(({ series }) => series);
  const known = await sliceStatuses(db, series, { start: "2026-03-15", end: "2026-03-17" });

  expect(series.map((one) => known.get(seriesKey(one)))).toEqual([
    { "2026-03-15": "complete", "2026-03-16": "suspect", "2026-03-17": "failed" },
    undefined,
    { "2026-03-16": "complete" },
    { "2026-03-17": "complete" },
  ]);
});

test("gaps are listed from the newest", async () => {
  const usage = { "2026-03-12": { requests: "1" }, "2026-03-14": { requests: "5" } };
  const { project, seriesId } = await newSeries(db, "none", { usage });
  await store(db, seriesId, { "2026-03-12": {} });
  await fail(db, seriesId, ["2026-03-15"]);
  await setDue(db, [seriesId], "2026-03-10", "2026-03-16");
  const { gaps } = await newestGaps(queryOn(db), [project.name]);
  const gap = { series: [{ project: project.name, source: "usage", grouping: "none", filter: "all" }] };
  expect(gaps).toEqual([
    { ...gap, status: "missing", from: "2026-03-16", to: "2026-03-16", error: null },
    { ...gap, status: "failed", from: "2026-03-15", to: "2026-03-15", error: "down" },
    { ...gap, status: "missing", from: "2026-03-13", to: "2026-03-13", error: null },
    { ...gap, status: "missing", from: "2026-03-10", to: "2026-03-11", error: null },
  ]);
});
