// Reads a view of schema bi for a dump, a few rows at a time, all as of one moment and always in the same order.

import { sql } from "kysely";
import type { Day } from "../usage/days.ts";
import { setUntilCommit, type Tx } from "./connection/transaction.ts";

/** Both days are included. */
export type DayRange = { readonly from?: Day | undefined; readonly to?: Day | undefined };

/** A column that is not text is a number, a day or a time. */
type Column = { readonly name: string; readonly isText: boolean };

/** `days` names the columns with the first and the last day of a row, of which at least one day has to be in a range. */
export type View = { readonly name: string; readonly columns: readonly Column[]; readonly days?: readonly string[] };

const DAYS = [["usage_date"], ["x_UsageDate"], ["from_date", "to_date"], ["taken_at"], ["started_at"]];
const BATCH_ROWS = 1_000;

export async function listViews(tx: Tx): Promise<readonly View[]> {
  const { rows } = await sql<View>`
    select c.relname as name, json_agg(json_build_object('name', a.attname, 'isText',
      not a.atttypid = any ('{integer,bigint,numeric,date,timestamptz}'::regtype[])) order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'bi'::regnamespace and c.relkind = 'v'
    group by c.relname order by c.relname collate "C"
  `.execute(tx);
  return rows.map((view) => {
    const days = DAYS.find((all) => all.every((name) => view.columns.some((column) => column.name === name)));
    return { ...view, ...(days && { days }) };
  });
}

/** Yields rows of JSON texts: every digit is kept. Their order is the same in every locale. */
export async function* readViewRows(tx: Tx, { name, columns, days = [] }: View, { from, to }: DayRange) {
  // All rows are read, while a cursor is planned to return its first rows early. It ends if nobody reads on, because the database
  // keeps what is replaced meanwhile.
  const reading = { cursor_tuple_fraction: "1", idle_in_transaction_session_timeout: "10min" };
  await setUntilCommit(tx, { timezone: "UTC", ...reading });
  const value = (column: string) => sql.ref(`v.${column}`);
  const [first = sql`null`, last = first] = days.map((column) => sql`${value(column)}::date`);
  const order = columns.map((one) => (one.isText ? sql`${value(one.name)}::text collate "C"` : value(one.name)));
  await sql`
    declare dumped no scroll cursor for
    select ${sql.join(columns.map((one) => sql`to_json(${value(one.name)})::text as ${sql.id(one.name)}`))}
    from ${sql.id("bi", name)} v
    where ${from ? sql`${last} >= ${from}::date` : sql`true`} and ${to ? sql`${first} <= ${to}::date` : sql`true`}
    order by ${sql.join(order)}
  `.execute(tx);
  const next = sql<Readonly<Record<string, string | null>>>`fetch ${sql.lit(BATCH_ROWS)} from dumped`;
  for (;;) {
    const { rows } = await next.execute(tx);
    if (rows.length > 0) yield rows.map((row) => columns.map((column) => row[column.name] ?? null));
    if (rows.length < BATCH_ROWS) return;
  }
}
