// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.view_version (
      -- With its schema: the view or function that a file of migrations/views creates.
      name            text        primary key,
      -- SHA-256 of the file's text.
      hash            text        not null,
      -- The version of usage-export that created it.
      program_version text        not null,
      created_at      timestamptz not null default now()
    )
  `.execute(db);
}
