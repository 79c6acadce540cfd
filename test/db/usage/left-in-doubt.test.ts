// A day that becomes suspect in the last run whose window has it: it is read again outside of the window.

import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { daysToReread, dueSlices } from "../../../src/db/usage/coverage.ts";
import { markDue } from "../../../src/db/usage/series.ts";
import { seriesKey } from "../../../src/usage/series.ts";
import type { FilterDoubt } from "../../../src/usage/slice.ts";
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
    { day: back(4), status: "suspect", attemptedAt: expect.any(Date), doubtedAt: expect.any(Date) },
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

test("an export reads a suspect day before the window in addition to its window", async () => {
  const { series, seriesId } = await readDays();
  await store(db, seriesId, [slice(back(4), {})]);
  expect(await daysToReread(db, [series], back(0))).toEqual(new Map([[seriesKey(series), [back(4)]]]));
});

test("a day that is suspect because the service ignores the filter is not read again", async () => {
  const { series, seriesId } = await readDays();
  const doubt: FilterDoubt = { kind: "filter-ignored", reason: "ignored", isConfirmable: false };
  await store(db, seriesId, [slice(back(4), { listen: "9" })], { doubt });
  expect(await dueOf(seriesId)).toEqual([]);
  expect(await daysToReread(db, [series], back(0))).toEqual(new Map());
});
