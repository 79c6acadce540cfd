// An earlier version stored answers without any date as the usage of the day of their run. Migrating turns them into snapshots.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { migrateToLatest } from "../../../src/db/connection/migrate.ts";
import { emptyDatabase, migrateTo } from "./empty-database.ts";

/** The newest migration of the version that stored undated answers as the usage of a day. */
const OLDER = "0010_keep_superseded_rows";

type Reading = { readonly day: string; readonly at: string; readonly requests: readonly [number, number | null] };

/** Two groups, of which the second comes later; the second night was read twice. */
const READINGS: readonly Reading[] = [
  { day: "2026-03-10", at: "2026-03-10T02:15:00Z", requests: [9950, null] },
  { day: "2026-03-11", at: "2026-03-11T02:15:00Z", requests: [9960, 1] },
  { day: "2026-03-11", at: "2026-03-11T14:00:00Z", requests: [9965, 1] },
  { day: "2026-03-12", at: "2026-03-12T02:15:00Z", requests: [9970, 2] },
];

test("each reading becomes a snapshot with its numbers, and its day is gone from every view", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.directUrl);
  await migrateTo(db, OLDER);
  const undated = await addSeries(db, "endpoint", null);
  for (const [i, reading] of READINGS.entries()) await addReading(db, undated, reading, READINGS[i - 1]);
  // Two series whose answers had dates, one without and one with a window. Each has one day, which was read on the day after it.
  for (const windowDays of [null, 7]) {
    const dated = await addSeries(db, windowDays === null ? "model" : "method", windowDays);
    await addSlice(db, dated, "2026-03-11", "2026-03-12T02:15:00.123Z", "2026-03-12T02:15:00.123Z");
    await addRow(db, dated, { day: "2026-03-11", at: "2026-03-12T02:15:00.123Z", requests: [5, null] });
  }

  await migrateToLatest(db);

  const { rows } = await sql`
    select snapshot, taken_at, rows, group_value, requests, requests_change, run_id from bi.usage_snapshot
    order by snapshot, group_value
  `.execute(db);
  const of = (snapshot: number, at: string, count: number) => ({
    snapshot,
    taken_at: new Date(at),
    rows: count,
    run_id: null,
  });
  expect(rows).toEqual([
    { ...of(1, "2026-03-10T02:15:00Z", 1), group_value: "first", requests: "9950", requests_change: null },
    { ...of(2, "2026-03-11T02:15:00Z", 2), group_value: "first", requests: "9960", requests_change: "10" },
    { ...of(2, "2026-03-11T02:15:00Z", 2), group_value: "second", requests: "1", requests_change: "1" },
    { ...of(3, "2026-03-11T14:00:00Z", 2), group_value: "first", requests: "9965", requests_change: "5" },
    { ...of(3, "2026-03-11T14:00:00Z", 2), group_value: "second", requests: "1", requests_change: "0" },
    { ...of(4, "2026-03-12T02:15:00Z", 2), group_value: "first", requests: "9970", requests_change: "5" },
    { ...of(4, "2026-03-12T02:15:00Z", 2), group_value: "second", requests: "2", requests_change: "1" },
  ]);
  const { rows: coverage } = await sql`
    select "grouping", usage_date, status from bi.coverage where status <> 'missing' order by "grouping"
  `.execute(db);
  expect(coverage).toEqual([
    { grouping: "endpoint", usage_date: null, status: "undated" },
    { grouping: "method", usage_date: "2026-03-11", status: "complete" },
    { grouping: "model", usage_date: "2026-03-11", status: "complete" },
  ]);
  for (const view of ["bi.usage_by_endpoint", "bi.restatements", "bi.coverage_gaps"]) {
    const { rows: left } = await sql`select * from ${sql.raw(view)}`.execute(db);
    expect(left).toEqual([]);
  }
  const { rows: kept } = await sql`select "grouping", requests from bi.usage_as_of(now()) order by 1`.execute(db);
  expect(kept).toEqual([
    { grouping: "method", requests: "5" },
    { grouping: "model", requests: "5" },
  ]);
});

test.each([
  // Both slices are from one answer. It had dates: an answer without dates made a single slice.
  { name: "together", newest: sql`fetch_no = (select nextval('usage_export.fetch_no'))` },
  // Each slice is from an answer that came a week after its day. It had dates: without, it would be the slice of the day it came on.
  { name: "one by one", newest: sql`fetched_at = fetched_at + interval '7 days'` },
])(
  "slices that an answer with dates replaced stay in the daily views, although closed_at is still that of an undated answer: $name",
  async ({ newest }) => {
    await using empty = await emptyDatabase();
    await using db = openPostgres(empty.directUrl);
    await migrateTo(db, OLDER);
    const series = await addSeries(db, "endpoint", null);
    for (const reading of READINGS.slice(0, 2)) await addReading(db, series, reading, undefined);
    // As a real export does, this keeps closed_at, by which the migration recognises slices of undated answers.
    await sql`update usage_export.slice set ${newest} where series_id = ${series}`.execute(db);

    await migrateToLatest(db);

    const { rows: days } = await sql`select usage_date, requests from bi.usage_by_endpoint order by 1, 2`.execute(db);
    expect(days).toEqual([
      { usage_date: "2026-03-10", requests: "9950" },
      { usage_date: "2026-03-11", requests: "1" },
      { usage_date: "2026-03-11", requests: "9960" },
    ]);
    const { rows: snapshots } = await sql`select * from bi.usage_snapshot`.execute(db);
    expect(snapshots).toEqual([]);
  },
);

async function addSeries(db: Database, grouping: string, windowDays: number | null): Promise<number> {
  const { rows } = await sql<{ series_id: number }>`
    insert into usage_export.series (project_id, project, "grouping", filter_key, filter, window_days, due_from, due_through)
    values ('project-1', 'project-1', ${grouping}, '{}', 'all', ${windowDays}, '2026-03-11', '2026-03-11')
    returning series_id
  `.execute(db);
  return rows[0]?.series_id ?? 0;
}

async function addSlice(db: Database, seriesId: number, day: string, at: string, closedAt: string): Promise<void> {
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at, content_hash, rows)
    values (${seriesId}, ${day}, 'complete', nextval('usage_export.fetch_no'), ${at}, ${closedAt}, ${randomUUID()}, 1)
    on conflict (series_id, usage_date) do update set fetch_no = excluded.fetch_no, fetched_at = excluded.fetched_at
  `.execute(db);
}

/** Writes what the earlier version wrote for an undated answer: a slice of the run's day, closed at the midnight that ends the day. */
async function addReading(
  db: Database,
  seriesId: number,
  reading: Reading,
  before: Reading | undefined,
): Promise<void> {
  await addSlice(db, seriesId, reading.day, reading.at, `${reading.day}T24:00:00Z`);
  await addRow(db, seriesId, reading, before?.day === reading.day ? before : undefined);
}

async function addRow(db: Database, seriesId: number, reading: Reading, before?: Reading): Promise<void> {
  const { day, at, requests } = reading;
  for (const [i, value] of (["first", "second"] as const).entries()) {
    const [number, old] = [requests[i] ?? null, before?.requests[i] ?? null];
    if (number === null || number === old) continue;
    const { rows } = await sql<{ group_id: number }>`
      insert into usage_export.group_value ("grouping", key_hash, group_key, value_sent, display)
      values ('endpoint', ${value}, ${value}, ${value}, ${value})
      on conflict ("grouping", key_hash) do update set display = excluded.display
      returning group_id
    `.execute(db);
    const groupId = rows[0]?.group_id;
    if (old !== null) {
      await sql`
        insert into usage_export.superseded_row (series_id, usage_date, group_id, requests, gone, revision, first_seen_at,
          last_changed_at, restates, returned, superseded_at)
        values (${seriesId}, ${day}, ${groupId}, ${old}, false, 1, ${before?.at}, ${before?.at}, false, false, ${at})
      `.execute(db);
    }
    await sql`
      insert into usage_export.snapshot_row (series_id, usage_date, group_id, requests, revision, restates, first_seen_at,
        last_changed_at)
      values (${seriesId}, ${day}, ${groupId}, ${number}, ${old === null ? 1 : 2}, ${old !== null}, ${at}, ${at})
      on conflict (series_id, usage_date, group_id) do update
      set requests = excluded.requests, revision = excluded.revision, restates = excluded.restates,
        last_changed_at = excluded.last_changed_at
    `.execute(db);
  }
}
