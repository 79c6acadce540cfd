// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.worker (
      worker_id    uuid        primary key,
      host         text        not null,
      pid          integer     not null,
      version      text        not null,
      started_at   timestamptz not null default clock_timestamp(),
      -- The end of its newest tick: a worker that hangs in one plans nothing.
      last_seen_at timestamptz not null default clock_timestamp(),
      -- It was told to stop. NULL while it runs, and for one that was killed.
      stopped_at   timestamptz
    )
  `.execute(db);
  // What was due while a job was paused is late from here on, not from its own moment.
  await sql`alter table usage_export.job add column resumed_at timestamptz`.execute(db);
}
