// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

/** Which dialect a service speaks, as a probe found it: for all processes and runs. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.service_dialect (
      -- The service's address, as it is configured.
      service  text        primary key,
      dialect  text        not null check (dialect in ('interface', '2026')),
      found_at timestamptz not null default now()
    )
  `.execute(db);
}
