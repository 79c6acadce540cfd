// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

/** An answer may also be doubtful because its numbers may not be those of its filter. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.slice
      drop constraint slice_suspect_why_check,
      add constraint slice_suspect_why_check
        check (suspect_why in ('empty', 'fall', 'filter-empty', 'filter-ignored'))
  `.execute(db);
}
