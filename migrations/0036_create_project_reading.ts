// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // When a project's keys and balances were last read. A run has no time for those of thousands of projects, so the oldest come first.
  await sql`
    create table usage_export.project_reading (
      project_id text        primary key,
      read_at    timestamptz not null
    )
  `.execute(db);
}
