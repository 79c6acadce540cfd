// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.job (
      kind              text        not null check (kind in ('export', 'rotation')),
      name              text        not null,
      -- The newest moment of its schedule that was taken up, by a run or as skipped. Workers lock the row while they decide.
      scheduled_through timestamptz,
      paused_at         timestamptz,
      paused_why        text,
      paused_by         text,
      created_at        timestamptz not null default now(),
      primary key (kind, name),
      check ((paused_at is null) = (paused_why is null) and (paused_at is null) = (paused_by is null))
    )
  `.execute(db);

  await sql`
    alter table usage_export.run
      -- How many of its requests wait for workers or are with one; null where one process makes them all.
      add column requests_open integer check (requests_open >= 0),
      drop constraint run_status_check,
      add constraint run_status_check check (status in ('running', 'ok', 'failed', 'stopped', 'skipped'))
  `.execute(db);
  await sql`create index run_running on usage_export.run (kind, job) where status = 'running'`.execute(db);
  await sql`
    comment on column bi.runs.status is
    'running; ok: everything was stored; failed: something was not; stopped: a signal ended it; skipped: the run before it was still running; interrupted: it ended without saying so'
  `.execute(db);

  // How many readings of the slice failed in a row: each rest before the next one is longer.
  await sql`alter table usage_export.slice add column failures integer not null default 0 check (failures >= 0)`.execute(
    db,
  );
}
