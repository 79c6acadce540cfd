// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

/** Get Fields lists what was used in its period only: what was listed once stays a name that the service knows. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.listed_name (
      project_id    text        not null,
      kind          text        not null check (kind in ('feature', 'model', 'tag')),
      name          text        not null,
      -- Of a model the id that today's service filters by; empty for what has none.
      model_id      text        not null default '',
      first_seen_at timestamptz not null default now(),
      primary key (project_id, kind, name, model_id)
    )
  `.execute(db);
}
