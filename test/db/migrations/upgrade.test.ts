// A database of every older version can be migrated to this version, and keeps its rows.

import fs from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { afterAll, expect, test } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { migrateToLatest, requireCurrentSchema } from "../../../src/db/connection/migrate.ts";
import { installQueue } from "../../../src/db/jobs/queue.ts";
import { copyDatabase } from "../../support/database.ts";
import { emptyDatabase, migrateTo } from "./empty-database.ts";
import { schemaText } from "./schema-text.ts";

const SCHEMA = fs.readFileSync(path.join(import.meta.dirname, "schema.txt"), "utf8").replaceAll(/^--.*\n/gm, "");
const migrations = fs
  .readdirSync(path.join(import.meta.dirname, "../../../migrations"))
  .filter((file) => file.endsWith(".ts"))
  .map((file) => path.basename(file, ".ts"))
  .sort();

/** Goes from version to version with the tests below, which copy it: reaching each version from nothing takes several times as long. */
const older = await emptyDatabase();
afterAll(() => older[Symbol.asyncDispose]());

async function copyOfVersion(migration: string): ReturnType<typeof copyDatabase> {
  {
    await using db = openPostgres(older.directUrl);
    await migrateTo(db, migration);
    await installQueue(db);
  }
  return copyDatabase(older);
}

test.each(migrations)("a database at migration %s is brought up to date and keeps its rows", async (migration) => {
  await using copy = await copyOfVersion(migration);
  await using db = openPostgres(copy.directUrl);
  await fill(db);

  await migrateToLatest(db);
  await requireCurrentSchema(db);

  expect(await schemaText(db)).toBe(SCHEMA);
  const { rows: total } = await sql`
    select project, usage_date::text as day, requests, revision, finality from bi.usage_total
  `.execute(db);
  expect(total).toEqual([
    { project: "production", day: "2026-03-16", requests: "12.5", revision: 1, finality: "final" },
  ]);
  const { rows: asOf } = await sql`select requests from bi.usage_as_of('2026-03-20') `.execute(db);
  expect(asOf).toEqual([{ requests: "12.5" }]);
  const { rows: runs } = await sql`select job, status, installation from bi.runs`.execute(db);
  expect(runs).toEqual([{ job: "nightly", status: "ok", installation: "default" }]);
  const { rows: series } = await sql`
    select s.installations, i.installation, i.window_days is not distinct from s.window_days and i.project = s.project as "isSame"
    from usage_export.series s join usage_export.series_installation i using (series_id)
  `.execute(db);
  // In the newest schemas `fill` stores a series that no program has registered.
  const wasThere = migration < "0038_separate_installations";
  expect(series).toEqual(wasThere ? [{ installations: ["default"], installation: "default", isSame: true }] : []);
});

test("if a filter had other conditions for a while, the migrated history shows the rows of one condition at each time, never of both", async () => {
  await using empty = await emptyDatabase();
  await using db = openPostgres(empty.directUrl);
  await migrateTo(db, "0011_remember_views");
  await sql`
    insert into usage_export.series (project_id, project, "grouping", filter_key, filter, created_at, superseded_at) values
      ('project-1', 'production', 'endpoint', '{"dimensions":{"endpoint":"listen"}}', 'narrow', '2026-03-01', null),
      ('project-1', 'production', 'endpoint', '{"dimensions":{"endpoint":"speak"}}', 'narrow', '2026-03-10', '2026-03-20');
    insert into usage_export.slice (series_id, usage_date, status, fetch_no)
    select id, '2026-02-28', 'complete', id from unnest(array[1, 2]) as id;
    insert into usage_export.group_value ("grouping", key_hash, group_key, value_sent, display)
    select 'endpoint', name, name, name, name from unnest(array['listen', 'speak']) as name;
    insert into usage_export.snapshot_row
      (series_id, usage_date, group_id, requests, revision, first_seen_at, last_changed_at)
    values (1, '2026-02-28', 1, 1, 1, '2026-03-01', '2026-03-01'), (2, '2026-02-28', 2, 2, 1, '2026-03-10', '2026-03-10')
  `.execute(db);
  await migrateToLatest(db);
  const shownAt = async (moment: string) => {
    const { rows } = await sql<{ value: string }>`
      select group_value as value from bi.usage_as_of(${moment}::timestamptz) order by group_value
    `.execute(db);
    return rows.map(({ value }) => value);
  };
  expect(await shownAt("2026-03-05")).toEqual(["listen"]);
  expect(await shownAt("2026-03-15")).toEqual(["speak"]);
  expect(await shownAt("2026-03-25")).toEqual(["listen"]);
});

/** Stores what every version can hold: a day with one row, and the run that read it. */
async function fill(db: Database): Promise<void> {
  await sql`
    insert into usage_export.series (project_id, project, "grouping", filter_key, filter, window_days, created_at)
    values ('project-1', 'production', 'none', '{}', 'all', 3, '2026-03-17T02:00:00Z');
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at, content_hash, rows)
    values (1, '2026-03-16', 'complete', nextval('usage_export.fetch_no'), '2026-03-17T02:00:00Z', '2026-03-17T02:00:00Z', 'old', 1);
    insert into usage_export.group_value ("grouping", key_hash, group_key, value_sent)
    values ('none', 'hash', '[]', 'null');
    insert into usage_export.snapshot_row
      (series_id, usage_date, group_id, requests, revision, first_seen_at, last_changed_at)
    values (1, '2026-03-16', 1, 12.5, 1, '2026-03-17T02:00:00Z', '2026-03-17T02:00:00Z');
    insert into usage_export.run (run_id, kind, job, trigger, status, finished_at)
    values (gen_random_uuid(), 'export', 'nightly', 'schedule', 'ok', now())
  `.execute(db);
  await sql`
    do $$
    begin
      if to_regclass('usage_export.snapshot_change') is not null then
        insert into usage_export.snapshot_change
          (series_id, usage_date, group_id, revision, kind, restates, seen_at, requests)
        values (1, '2026-03-16', 1, 1, 'appeared', false, '2026-03-17T02:00:00Z', 12.5);
      end if;
      if to_regclass('usage_export.series_period') is not null then
        insert into usage_export.series_period (series_id, project, filter, shown_from)
        values (1, 'production', 'all', '-infinity');
      end if;
    end
    $$
  `.execute(db);
}
