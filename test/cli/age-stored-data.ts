// Makes stored data some days older, as if no program had run during these days.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";

/** Days are first moved this far back and then forward again: a day can't be moved to a day that another row still has. */
const FAR_DAYS = 100_000;
const USAGE_TABLES = [
  ...["slice", "slice_row", "superseded_row", "undated_snapshot"],
  ...["run", "job", "worker", "series"],
];

/** Moves every date and time in the tables back by `days`. */
export async function ageStoredData(db: Database, days: number, tables: readonly string[] = USAGE_TABLES) {
  const { rows } = await sql<{ table: string; columns: readonly string[] }>`
    select table_name as "table", array_agg(column_name::text) as columns from information_schema.columns
    where table_schema = 'usage_export' and table_name in (${sql.join(tables)}) and is_generated = 'NEVER'
      and data_type in ('date', 'timestamp with time zone')
    group by 1
  `.execute(db);
  for (const daysBack of [days + FAR_DAYS, -FAR_DAYS]) {
    // In hours, because a day in the session's time zone may be longer or shorter than 24 hours.
    const ago = sql`make_interval(hours => ${24 * daysBack})`;
    for (const { table, columns } of rows) {
      const set = columns.map((column) => sql`${sql.ref(column)} = ${sql.ref(column)} - ${ago}`);
      await sql`update ${sql.table(`usage_export.${table}`)} set ${sql.join(set)}`.execute(db);
    }
  }
}
