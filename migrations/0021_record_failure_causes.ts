// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.slice
      -- What kind of failure the newest reading ended with, beside its words, and since when every reading has failed. Both mean
      -- something only while the slice is failed.
      add column error_code text,
      add column failing_since timestamptz
  `.execute(db);
}
