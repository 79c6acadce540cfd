// A database whose clock is set to another time: nobody sets the clock of a test's server, which others use too, so all that is
// stored is moved the other way, in every table there is. Which of the two it was no program can tell.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";

/** Where nothing is, so that nothing is moved to where another still stands. */
const FAR_DAYS = 100_000;

type Column = { readonly schema: string; readonly table: string; readonly column: string; readonly type: string };

/** Back for less than nothing. By whole days, as days of usage move along. */
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
    // Nobody may see what is on its way. Programs that work meanwhile lock rows in an order of their own.
    await inTransaction(db, async (tx) => {
      for (const days of [FAR_DAYS - byDays, -FAR_DAYS]) {
        await sql`update ${sql.table(name)} set ${moved(days)}`.execute(tx);
      }
    });
  }
}
