// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.notice (
      -- What is told of: a job's runs, its gaps, or one concern about a rotation.
      subject       text        primary key,
      -- What was said of it last. Without a row nothing was, which is as good as well.
      state         text        not null check (state in ('wrong', 'well')),
      since         timestamptz not null default now(),
      -- Of who says it now, and until when nobody else may: one that dies in between lets another try after that. Another with each
      -- change, so that who read the row before can tell.
      claim         uuid        not null,
      claimed_until timestamptz
    )
  `.execute(db);
}
