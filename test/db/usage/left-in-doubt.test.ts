// A day that becomes suspect in the last run whose window has it: it is read again outside of the window.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { dueSlices, settledSlices } from "../../../src/db/usage/due-slices.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { markDue } from "../../../src/db/usage/stored-series.ts";
import { isDueForRetry, RETRIED_CODES } from "../../../src/usage/backfill.ts";
import type { FilterDoubt } from "../../../src/usage/slice-decision.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, makeDoubtsAnHourOlder, newSeries, slice, store } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

/** Stores the last four days of a series. With a window of two days, the two oldest are outside of it. */
async function readDays(part: { readonly windowDays?: number } = { windowDays: 2 }) {
  const one = await newSeries(db, "endpoint", part);
  const days = [4, 3, 2, 1].map(back);
  await store(
    db,
    one.seriesId,
    days.map((day) => slice(day, { listen: "5" })),
  );
  const due = { start: back(4), end: back(1) };
  await markDue(db, [one.seriesId], { first: due.start, oldest: due, through: due.end });
  return one;
}

const dueOf = (seriesId: number) => inTransaction(db, (tx) => dueSlices(tx, [seriesId]));

test("a suspect day before the window is due until it is confirmed, and one in the window is not", async () => {
  const { seriesId } = await readDays();
  await store(db, seriesId, [slice(back(4), {}), slice(back(2), {})]);
  expect(await dueOf(seriesId)).toMatchObject([
    { day: back(4), status: "suspect", attemptedAt: expect.any(Date), since: expect.any(Date) },
  ]);
  await makeDoubtsAnHourOlder(db);
  await store(db, seriesId, [slice(back(4), {})]);
  expect(await dueOf(seriesId)).toEqual([]);
});

test("without a window, a suspect day is not due, because no day can be requested again", async () => {
  const { seriesId } = await readDays({});
  await store(db, seriesId, [slice(back(4), {})]);
  expect(await dueOf(seriesId)).toEqual([]);
});

test("a day that is suspect because the service ignores the filter is not read again", async () => {
  const { seriesId } = await readDays();
  const doubt: FilterDoubt = { kind: "filter-ignored", reason: "ignored", isConfirmable: false };
  await store(db, seriesId, [slice(back(4), { listen: "9" })], { doubt });
  expect(await dueOf(seriesId)).toEqual([]);
});

test("a day that failed while the database's clock was two days ahead is due at once when the clock is right again", async () => {
  const { seriesId } = await readDays();
  const failure = { seriesId, days: [back(2)], reason: "refused", code: "unauthorized" };
  await recordFailure(db, { ...failure, fetchNo: await nextFetchNo(db) });
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
