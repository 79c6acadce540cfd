// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // Since when the project has its name. Null for one that a program of an earlier version stored: it had the name since it was seen first.
  await sql`alter table usage_export.discovered_project add column named_at timestamptz`.execute(db);
}
