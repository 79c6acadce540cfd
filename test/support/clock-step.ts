// Simulates a step of the database's clock. Other tests use the same server, so its clock is not changed. Instead all stored times in
// every table are moved the other way, which looks the same to a program.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";

/** Days are first moved this far away, because a day can't be moved to one that another row still has. */
const FAR_DAYS = 100_000;

type Column = { readonly schema: string; readonly table: string; readonly column: string; readonly type: string };

/** Sets the clock forward, or back if `byDays` is negative. Whole days, because the days of usage are moved, too. */
export async function setClock(db: Database, byDays: number): Promise<void> {
  const { rows: columns } = await sql<Column>`
    select n.nspname as schema, c.relname as "table", a.attname as "column", format_type(a.atttypid, null) as type
    from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('usage_export', 'usage_export_queue') and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname not like 'kysely%' and a.attnum > 0 and not a.attisdropped
      and format_type(a.atttypid, null) in ('date', 'timestamp with time zone')
  `.execute(db);
  const tables = Map.groupBy(columns, ({ schema, table }) => `${schema}.${table}`);
  for (const [name, ofTable] of tables) {
    const moved = (days: number) =>
      sql.join(
        ofTable.map(({ column, type }) => {
          const by = type === "date" ? sql`${sql.lit(days)}` : sql`make_interval(hours => ${sql.lit(24 * days)})`;
          return sql`${sql.id(column)} = ${sql.id(column)} + ${by}`;
        }),
      );
    // One transaction for each table, so that no program sees an intermediate state. All tables at once could deadlock with it.
    await inTransaction(db, async (tx) => {
      for (const days of [FAR_DAYS - byDays, -FAR_DAYS]) {
        await sql`update ${sql.table(name)} set ${moved(days)}`.execute(tx);
      }
    });
  }
}
