import { sql } from "kysely";
import { expect, test } from "vitest";
import { storedLists, storeReading } from "../../src/db/projects.ts";
import { resetFutureTimes } from "../../src/db/recovery.ts";
import { markDue } from "../../src/db/usage/series.ts";
import type { Day } from "../../src/usage/days.ts";
import { testDatabase } from "../support/database.ts";
import { daysBack, newSeries, slice, store } from "./stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

async function isClosed(seriesId: number, day: Day): Promise<boolean | undefined> {
  const { rows } = await sql<{ closed: boolean }>`
    select closed_at is not null as closed from usage_export.slice where series_id = ${seriesId} and usage_date = ${day}
  `.execute(db);
  return rows[0]?.closed;
}

test("after the clock was set back, a day with a future closed_at is open again", async () => {
  const { seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await store(db, seriesId, [slice(back(1), { listen: "1" })]);
  await sql`
    update usage_export.slice set closed_at = now() + interval '1 hour 7 seconds' where series_id = ${seriesId}
  `.execute(db);
  await resetFutureTimes(db);
  expect(await isClosed(seriesId, back(1))).toBe(false);
});

test("today's slice of an undated answer stays closed at the coming midnight, because nothing reads it again", async () => {
  const { seriesId } = await newSeries(db);
  const undated = { ...slice(back(0), { listen: "1" }), undated: true };
  await store(db, seriesId, [undated], { undated: "day", ownDays: true });
  await resetFutureTimes(db);
  expect(await isClosed(seriesId, back(0))).toBe(true);
});

test("a series that was first planned while the clock was ahead is due from its next window on", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  const window = (start: number, end: number) => ({ start: back(start), end: back(end) });
  await markDue(db, [seriesId], { first: back(-8), oldest: window(-8, -9), through: back(-9) });
  await resetFutureTimes(db);
  await markDue(db, [seriesId], { first: back(2), oldest: window(2, 1), through: back(1) });
  const { rows } = await sql`
    select usage_date as day, status from bi.coverage where project_id = ${project.id} order by usage_date
  `.execute(db);
  expect(rows).toEqual([2, 1].map((days) => ({ day: back(days), status: "missing" })));
});

test("after the clock was set back, projects that the service lists are stored again, and a doubtful list is confirmed in time", async () => {
  const list = "env ACCOUNT_KEY";
  const hours = (count: number) => new Date(Date.now() + count * 60 * 60_000);
  const listed = (ids: string) => [...ids].map((id) => ({ id, name: id }));
  await storeReading(db, { list, listed: listed("abc"), readAt: hours(4) });
  await storeReading(db, { list, listed: listed("a"), readAt: hours(5) });
  await resetFutureTimes(db);

  expect(await storeReading(db, { list, listed: listed("a"), readAt: hours(2) })).toBeDefined();
  expect(await storedLists(db)).toMatchObject([{ projects: 1, waiting: 0, waitingSince: null }]);
});
