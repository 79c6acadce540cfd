// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // A row is a version of a budget, which holds for whole periods: a month or a day in UTC.
  await sql`
    create table usage_export.budget (
      name        text        not null,
      -- The first day of the first period that the version holds for.
      valid_from  date        not null,
      -- The last day of the last one; null while the budget is configured like this.
      valid_until date        check (valid_until >= valid_from),
      -- The first day as configured; null where the configuration names none.
      from_day    date,
      project_ids text[]      not null,
      -- Null for all projects that were configured.
      project     text,
      -- all, or the dimension that scope_value is a value of.
      scope       text        not null check (scope in ('all', 'key', 'tag', 'model')),
      scope_value text        check ((scope = 'all') = (scope_value is null)),
      metric      text        not null,
      -- An ISO 4217 code for the metric cost.
      currency    text        check ((metric = 'cost') = (currency is not null)),
      period      text        not null check (period in ('month', 'day')),
      amount      numeric     not null check (amount > 0 and amount < 'infinity'),
      -- In percent of the amount, in rising order.
      thresholds  numeric[]   not null,
      recorded_at timestamptz not null default now(),
      recorded_by text        not null,
      primary key (name, valid_from)
    )
  `.execute(db);
  await sql`create unique index budget_current on usage_export.budget (name) where valid_until is null`.execute(db);

  await sql`
    create table usage_export.snooze (
      -- The name of an alert, or the beginning of names followed by a space.
      name       text        primary key,
      until      timestamptz not null,
      snoozed_at timestamptz not null default now(),
      snoozed_by text        not null
    )
  `.execute(db);
}
