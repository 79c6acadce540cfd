// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

/** What there was before belongs to the installation "default". */
export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    "alter table usage_export.worker add column installation text not null default 'default'",
    // The owner of a rotation's keys. Names of rotations are unique over all installations, as the keys and their usage are shown by them.
    "alter table usage_export.rotation add column installation text not null default 'default'",
    // Who put the price in force. There is one price book for all installations.
    "alter table usage_export.price add column installation text not null default 'default'",

    "alter table usage_export.job add column installation text not null default 'default'",
    "alter table usage_export.job drop constraint job_pkey, add primary key (installation, kind, name)",

    "alter table usage_export.run add column installation text not null default 'default'",
    "drop index usage_export.run_newest, usage_export.run_running, usage_export.run_scheduled",
    "create index run_newest on usage_export.run (installation, kind, job, started_at)",
    "create index run_running on usage_export.run (installation, kind, job) where status = 'running'",
    `create unique index run_scheduled on usage_export.run (installation, kind, job, scheduled_for)
     where scheduled_for is not null`,

    "alter table usage_export.notice add column installation text not null default 'default'",
    "alter table usage_export.notice drop constraint notice_pkey, add primary key (installation, subject)",
    "alter table usage_export.snooze add column installation text not null default 'default'",
    "alter table usage_export.snooze drop constraint snooze_pkey, add primary key (installation, name)",

    "alter table usage_export.budget add column installation text not null default 'default'",
    "alter table usage_export.budget drop constraint budget_pkey, add primary key (installation, name, valid_from)",
    "drop index usage_export.budget_current",
    "create unique index budget_current on usage_export.budget (installation, name) where valid_until is null",

    // One row a series and installation that exports it or did. The numbers and the days of a series are one, whoever exports it; its
    // columns hold what follows from these rows.
    `create table usage_export.series_installation (
      installation text        not null,
      series_id    integer     not null references usage_export.series,
      -- The names in this installation's configuration.
      project      text        not null,
      filter       text        not null,
      window_days  integer     check (window_days > 0),
      next_due_at  timestamptz,
      retired_at   timestamptz,
      primary key (installation, series_id)
    )`,
    "create index series_installation_series on usage_export.series_installation (series_id)",
    `insert into usage_export.series_installation (installation, series_id, project, filter, window_days, next_due_at, retired_at)
     select 'default', series_id, project, filter, window_days, next_due_at, retired_at from usage_export.series`,
    // Those that export it now, sorted.
    "alter table usage_export.series add column installations text[] not null default '{}'",
    "update usage_export.series set installations = '{default}' where retired_at is null",
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
