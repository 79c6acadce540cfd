// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.series (
      series_id     integer     generated always as identity primary key,
      project_id    text        not null,
      project       text        not null,
      "grouping"    text        not null check ("grouping" in
        ('none', 'accessor', 'deployment', 'endpoint', 'feature_set', 'method', 'model', 'tags')),
      -- The conditions as canonical JSON; '{}' is all usage.
      filter_key    text        not null,
      filter        text        not null,
      window_days   integer     check (window_days > 0),
      -- The days that were due when the series was last planned, and when the next one will be.
      due_from      date,
      due_through   date,
      next_due_at   timestamptz,
      -- Not configured any more.
      retired_at    timestamptz,
      -- Another series carries its name now: hidden from the views, so that no day is shown twice.
      superseded_at timestamptz,
      created_at    timestamptz not null default now(),
      unique (project_id, "grouping", filter_key)
    )
  `.execute(db);
  await sql`
    create unique index series_name on usage_export.series (project_id, "grouping", filter)
    where superseded_at is null
  `.execute(db);

  // A fetch takes its number before its call; a slice never goes back to a lower one.
  await sql`create sequence usage_export.fetch_no`.execute(db);

  await sql`
    create table usage_export.slice (
      series_id    integer     not null references usage_export.series,
      usage_date   date        not null,
      status       text        not null check (status in ('complete', 'suspect', 'failed')),
      -- The fetch whose rows are visible; 0 while there is none.
      fetch_no     bigint      not null default 0,
      fetched_at   timestamptz,
      -- The first good fetch after the day was over; until then its numbers are partial.
      closed_at    timestamptz,
      content_hash text,
      rows         integer     not null default 0 check (rows >= 0),
      error        text,
      -- The run that first got an empty answer in place of rows.
      suspect_run  uuid,
      attempted_at timestamptz not null default now(),
      primary key (series_id, usage_date)
    ) with (fillfactor = 90)
  `.execute(db);

  // Group values are long and repeat every day, so a row holds their number. The hash carries the uniqueness because a
  // value may be longer than an index entry can be.
  await sql`
    create table usage_export.group_value (
      group_id   integer generated always as identity primary key,
      "grouping" text    not null,
      key_hash   text    not null,
      group_key  text    not null,
      value_sent text    not null,
      display    text,
      unique ("grouping", key_hash)
    )
  `.execute(db);

  // No foreign keys here: only the merge writes these two tables, and checking two keys a row would double its time.
  await sql`
    create table usage_export.snapshot_row (
      series_id       integer     not null,
      usage_date      date        not null,
      group_id        integer     not null,
      hours           numeric     check (hours >= 0 and hours < 'infinity'),
      total_hours     numeric     check (total_hours >= 0 and total_hours < 'infinity'),
      agent_hours     numeric     check (agent_hours >= 0 and agent_hours < 'infinity'),
      tokens_in       numeric     check (tokens_in >= 0 and tokens_in < 'infinity'),
      tokens_out      numeric     check (tokens_out >= 0 and tokens_out < 'infinity'),
      tts_characters  numeric     check (tts_characters >= 0 and tts_characters < 'infinity'),
      requests        numeric     check (requests >= 0 and requests < 'infinity'),
      extra_metrics   jsonb,
      -- The group is not in the newest answer. The row stays so that its revisions go on if it comes back.
      gone            boolean     not null default false,
      revision        integer     not null check (revision > 0),
      first_seen_at   timestamptz not null,
      last_changed_at timestamptz not null,
      primary key (series_id, usage_date, group_id)
    ) with (fillfactor = 90)
  `.execute(db);

  await sql`
    create table usage_export.snapshot_change (
      series_id       integer     not null,
      usage_date      date        not null,
      group_id        integer     not null,
      revision        integer     not null check (revision > 0),
      kind            text        not null check (kind in ('appeared', 'changed', 'gone')),
      -- Whether the day had been stored before: its first reading is not a restatement.
      restates        boolean     not null,
      seen_at         timestamptz not null,
      hours           numeric,
      total_hours     numeric,
      agent_hours     numeric,
      tokens_in       numeric,
      tokens_out      numeric,
      tts_characters  numeric,
      requests        numeric,
      extra_metrics   jsonb,
      primary key (series_id, usage_date, group_id, revision)
    )
  `.execute(db);
  await sql`
    create index snapshot_change_restates on usage_export.snapshot_change (series_id, usage_date) where restates
  `.execute(db);

  await sql`
    create table usage_export.run (
      run_id         uuid        primary key,
      kind           text        not null check (kind in ('export', 'rotation')),
      job            text        not null,
      trigger        text        not null check (trigger in ('schedule', 'manual', 'catchup', 'backfill')),
      scheduled_for  timestamptz,
      started_at     timestamptz not null default now(),
      heartbeat_at   timestamptz not null default now(),
      finished_at    timestamptz,
      status         text        not null default 'running' check (status in ('running', 'ok', 'failed', 'stopped')),
      requests       integer     not null default 0,
      slices_planned integer     not null default 0,
      slices_complete integer    not null default 0,
      slices_suspect integer     not null default 0,
      slices_failed  integer     not null default 0,
      rows_changed   bigint      not null default 0,
      error          text
    )
  `.execute(db);
  // Replicas whose alarms ring together make one run.
  await sql`
    create unique index run_scheduled on usage_export.run (kind, job, scheduled_for) where scheduled_for is not null
  `.execute(db);
  await sql`create index run_started on usage_export.run (started_at)`.execute(db);
}
