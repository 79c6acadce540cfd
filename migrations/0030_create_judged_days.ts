// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // A row says that a final day was compared with the days before it: once, whatever changes later and whoever else tries.
  await sql`
    create table usage_export.judged_day (
      project_id text        not null,
      filter_key text        not null,
      usage_date date        not null,
      -- The series whose sum was judged.
      series_id  integer     not null references usage_export.series,
      verdict    text        not null check (verdict in ('normal', 'high', 'low', 'not judged')),
      -- The metric that is furthest off; null without any usage.
      metric     text,
      -- As stored when the day was judged.
      amount     numeric,
      expected   numeric,
      low        numeric,
      high       numeric,
      judged_at  timestamptz not null default now(),
      primary key (project_id, filter_key, usage_date)
    )
  `.execute(db);
}
