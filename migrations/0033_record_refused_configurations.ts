// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.worker
      -- Why the worker does not use the newest version of its configuration. NULL while it does.
      add column config_refused    text,
      add column config_refused_at timestamptz,
      add check ((config_refused is null) = (config_refused_at is null))
  `.execute(db);
}
