// A day whose first doubtful answer came with the last run that reads it: it is read again outside of the window.

import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { daysToReread, dueSlices } from "../../../src/db/usage/coverage.ts";
import { markDue } from "../../../src/db/usage/series.ts";
import { seriesKey } from "../../../src/usage/series.ts";
import type { FilterDoubt } from "../../../src/usage/slice.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, letDoubtsAge, newSeries, slice, store } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

/** Four days of a window of two; the first and the second are outside of it. */
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

test("a worker reads it again, and no day that the window reads anyway, until it is confirmed", async () => {
  const { seriesId } = await readDays();
  await store(db, seriesId, [slice(back(4), {}), slice(back(2), {})]);
  expect(await dueOf(seriesId)).toMatchObject([
    { day: back(4), status: "suspect", attemptedAt: expect.any(Date), doubtedAt: expect.any(Date) },
  ]);
  await letDoubtsAge(db);
  await store(db, seriesId, [slice(back(4), {})]);
  expect(await dueOf(seriesId)).toEqual([]);
});

test("without a window no day can be asked for again", async () => {
  const { seriesId } = await readDays({});
  await store(db, seriesId, [slice(back(4), {})]);
  expect(await dueOf(seriesId)).toEqual([]);
});

test("an export reads it in addition to its window", async () => {
  const { series, seriesId } = await readDays();
  await store(db, seriesId, [slice(back(4), {})]);
  expect(await daysToReread(db, [series], back(0))).toEqual(new Map([[seriesKey(series), [back(4)]]]));
});

test("a day whose filter the service ignores is not asked for again and again", async () => {
  const { series, seriesId } = await readDays();
  const doubt: FilterDoubt = { kind: "filter-ignored", reason: "ignored", isConfirmable: false };
  await store(db, seriesId, [slice(back(4), { listen: "9" })], { doubt });
  expect(await dueOf(seriesId)).toEqual([]);
  expect(await daysToReread(db, [series], back(0))).toEqual(new Map());
});
