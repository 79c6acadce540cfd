// Migrations keep the history that an older version recorded: past numbers and restatements.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { migrateToLatest } from "../../../src/db/connection/migrate.ts";
import { slice, store } from "../stored-usage.ts";
import { emptyDatabase, migrateTo } from "./empty-database.ts";

/** The last migration whose schema stored every revision of a row, also the newest, in the history table. */
const OLDER = "0009_leave_room_in_slices";
const DAY = "2026-03-10";
const MOMENTS = ["2026-03-11T02:00:00Z", "2026-03-12T02:00:00Z", "2026-03-13T02:00:00Z", "2026-03-14T02:00:00Z"];

/** Each group's value in every reading of the day; null if the reading did not contain the group. */
const GROUPS: Readonly<Record<string, readonly (number | null)[]>> = {
  stays: [5, 5, 5, 5],
  grows: [1, 2, 2, 7],
  goes: [3, 3, null, null],
  returns: [4, null, 4, 6],
  late: [null, null, 9, 9],
  "comes back": [6, 6, null, 6],
};

test("a migration changes no past number and no restatement", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.directUrl);
  await migrateTo(db, OLDER);
  await insertUsage(db);
  const before = await readHistory(db);
  expect(before.restatements).toHaveLength(9);
  expect(before.asOf.map((rows) => rows.length)).toEqual([5, 4, 4, 5]);
  expect(before.curve.length).toBeGreaterThan(0);

  await migrateToLatest(db);
  expect(await readHistory(db)).toEqual(before);
  const { rows } = await sql`select count(*)::integer as kept from usage_export.superseded_row`.execute(db);
  expect(rows).toEqual([{ kept: 8 }]);
});

test("a change after the migration continues the migrated revisions of a row", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.directUrl);
  await migrateTo(db, OLDER);
  await insertUsage(db);
  await migrateToLatest(db);
  await store(db, 1, [slice(DAY, { returns: "8" })]);
  const { rows: history } = await sql`
    select revision, kind, old_value, new_value from bi.restatements where group_value = 'returns' order by revision
  `.execute(db);
  expect(history).toEqual([
    { revision: 2, kind: "gone", old_value: "4", new_value: null },
    { revision: 3, kind: "appeared", old_value: null, new_value: "4" },
    { revision: 4, kind: "changed", old_value: "4", new_value: "6" },
    { revision: 5, kind: "changed", old_value: "6", new_value: "8" },
  ]);
});

/** Writes rows as that version did: every revision into the history table, and the newest one into the row as well. */
async function insertUsage(db: Database): Promise<void> {
  await sql`
    insert into usage_export.series (project_id, project, "grouping", filter_key, filter, window_days)
    values ('project-1', 'project-1', 'endpoint', '{}', 'all', 3)
  `.execute(db);
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at, content_hash, rows)
    values (1, ${DAY}, 'complete', nextval('usage_export.fetch_no'), ${MOMENTS.at(-1)}, ${MOMENTS[0]}, 'old', 5)
  `.execute(db);
  for (const [value, readings] of Object.entries(GROUPS)) await insertGroup(db, value, readings);
}

async function insertGroup(db: Database, value: string, readings: readonly (number | null)[]): Promise<void> {
  const { rows } = await sql<{ group_id: number }>`
    insert into usage_export.group_value ("grouping", key_hash, group_key, value_sent, display)
    values ('endpoint', encode(sha256(${`["${value}"]`}), 'hex'), ${`["${value}"]`}, ${`"${value}"`}, ${value})
    returning group_id
  `.execute(db);
  const groupId = rows[0]?.group_id;
  const revisions = readings.flatMap((requests, i) => {
    const old = readings[i - 1] ?? null;
    if (requests === old) return [];
    const kind = requests === null ? "gone" : old === null ? "appeared" : "changed";
    return [{ requests, kind, restates: i > 0, seenAt: MOMENTS[i] }];
  });
  for (const [i, { requests, kind, restates, seenAt }] of revisions.entries()) {
    await sql`
      insert into usage_export.snapshot_change
        (series_id, usage_date, group_id, revision, kind, restates, seen_at, requests)
      values (1, ${DAY}, ${groupId}, ${i + 1}, ${kind}, ${restates}, ${seenAt}, ${requests})
    `.execute(db);
  }
  const newest = revisions.at(-1);
  await sql`
    insert into usage_export.snapshot_row
      (series_id, usage_date, group_id, requests, gone, revision, first_seen_at, last_changed_at)
    values (1, ${DAY}, ${groupId}, ${newest?.requests}, ${newest?.kind === "gone"}, ${revisions.length},
      ${revisions[0]?.seenAt}, ${newest?.seenAt})
  `.execute(db);
}

async function readHistory(db: Database) {
  const { rows: restatements } = await sql`
    -- The columns that the older version had.
    select (to_jsonb(r) - 'source') as restatement from bi.restatements r order by group_value, revision, metric
  `.execute(db);
  const { rows: curve } = await sql`select * from bi.restatement_curve order by metric, days_after`.execute(db);
  const asOf: (readonly unknown[])[] = [];
  for (const moment of MOMENTS) {
    const { rows } = await sql`
      select * from bi.usage_as_of(${moment}::timestamptz) order by group_value
    `.execute(db);
    asOf.push(rows);
  }
  return { restatements, curve, asOf };
}
