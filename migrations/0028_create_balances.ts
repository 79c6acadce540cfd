// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // A row is a stretch of readings that gave the same balance.
  await sql`
    create table usage_export.balance (
      project_id        text        not null,
      project           text        not null,
      balance_id        text        not null,
      amount            numeric     not null check (amount > '-infinity' and amount < 'infinity'),
      units             text,
      purchase_order_id text,
      read_at           timestamptz not null default now(),
      last_read_at      timestamptz not null default now(),
      -- When another amount was read, or the balance was not listed any more; null while it is the newest.
      ended_at          timestamptz
    )
  `.execute(db);
  await sql`
    create unique index balance_newest on usage_export.balance (project_id, balance_id) where ended_at is null
  `.execute(db);
}
