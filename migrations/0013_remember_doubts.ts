// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.slice
      -- What is doubtful of the newest answer: it has no rows, or a fraction of what is stored.
      add column suspect_why text check (suspect_why in ('empty', 'fall')),
      -- When the first doubtful answer came; another one confirms it only some time later.
      add column suspect_since timestamptz,
      -- The newest doubtful fetch: an older one does not settle the doubt.
      add column suspect_fetch_no bigint
  `.execute(db);
  // Of a doubt from before only its run is known. No fetch that is under way is newer than it is taken for here.
  await sql`
    update usage_export.slice
    set suspect_why = 'empty', suspect_since = attempted_at,
      suspect_fetch_no = greatest(fetch_no, (select last_value from usage_export.fetch_no))
    where suspect_run is not null
  `.execute(db);
  await sql`alter table usage_export.run add column slices_stale integer not null default 0`.execute(db);
}
