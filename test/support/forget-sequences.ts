// Changes a database into one that logical replication has made: the tables have all their rows, and every sequence starts at 1 again.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";

export async function forgetSequences(db: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select format('%I.%I', schemaname, sequencename) as name from pg_sequences where schemaname = 'usage_export'
  `.execute(db);
  for (const { name } of rows) await sql`alter sequence ${sql.raw(name)} restart`.execute(db);
}
