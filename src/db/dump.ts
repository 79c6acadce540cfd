// Reads a view of schema bi for a dump, a few rows at a time, as of one moment and always in the same order.

import { type RawBuilder, sql } from "kysely";
import type { Day } from "../usage/days.ts";
import { setUntilCommit, type Tx } from "./connection/transaction.ts";

/** Which days to dump. With `changedSince`, a timestamp of Postgres, only days that have changed since then. */
export type DayChoice = {
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly changedSince?: string | undefined;
};

/** A column that is not text is a number, a day or a time. */
type Column = { readonly name: string; readonly isText: boolean };

/** `dayColumn` has the day of a row; left out if no column has it. */
export type DumpedView = { readonly name: string; readonly columns: readonly Column[]; readonly dayColumn?: string };

const DAY_COLUMNS = ["usage_date", "x_UsageDate"];
const BATCH_ROWS = 1_000;

export async function listViews(tx: Tx): Promise<readonly DumpedView[]> {
  const { rows } = await sql<DumpedView>`
    select c.relname as name, json_agg(json_build_object('name', a.attname, 'isText',
      not a.atttypid = any ('{integer,bigint,numeric,date,timestamptz}'::regtype[])) order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'bi'::regnamespace and c.relkind = 'v'
    group by c.relname order by c.relname collate "C"
  `.execute(tx);
  return rows.map((view) => {
    const dayColumn = DAY_COLUMNS.find((name) => view.columns.some((column) => column.name === name));
    return { ...view, ...(dayColumn && { dayColumn }) };
  });
}

/** Whether bi.changed_days tells which days of the view may have changed. It does for views whose rows all belong to a stored day. */
export function isCoveredByChangedDays({ name }: DumpedView): boolean {
  return /^(usage|cost)_(total|filtered|by_\w+)$/.test(name);
}

/** The result of bi.changed_days, described like a view. The last column is the `changedSince` of the next dump, the same in each row. */
export const CHANGED_DAYS_VIEW: DumpedView = {
  name: "changed_days",
  columns: [
    { name: "project_id", isText: true },
    { name: "project", isText: true },
    { name: "usage_date", isText: false },
    { name: "next_since", isText: false },
  ],
};

export function readChangedDays(tx: Tx, view: DumpedView, since: string) {
  return readRows(tx, CHANGED_DAYS_VIEW, sql`(${changedDays(view, since)})`, sql`true`);
}

function changedDays({ name }: DumpedView, since: string) {
  return sql`
    select distinct project_id, project, usage_date, next_since from bi.changed_days(${since}::timestamptz)
    where source = ${name.startsWith("cost") ? "billing" : "usage"}
  `;
}

/** Yields batches of rows. Values are JSON texts, which keep every digit. The order is the same in every locale. */
export function readViewRows(tx: Tx, view: DumpedView, { from, to, changedSince }: DayChoice) {
  const day = view.dayColumn === undefined ? sql`null` : sql.ref(`v.${view.dayColumn}`);
  const isChanged =
    changedSince === undefined
      ? sql`true`
      : sql`(v.project_id, v.usage_date) in (select project_id, usage_date from (${changedDays(view, changedSince)}) c)`;
  const isChosen = sql`
    ${from ? sql`${day} >= ${from}::date` : sql`true`} and ${to ? sql`${day} <= ${to}::date` : sql`true`} and ${isChanged}
  `;
  return readRows(tx, view, sql.id("bi", view.name), isChosen);
}

async function* readRows(tx: Tx, { columns }: DumpedView, table: RawBuilder<unknown>, isChosen: RawBuilder<unknown>) {
  // By default Postgres plans a cursor for its first rows, but here all are read. If the reader stalls, the timeout ends the transaction:
  // as long as it is open, the database keeps every row that is replaced.
  const settings = { timezone: "UTC", cursor_tuple_fraction: "1", idle_in_transaction_session_timeout: "10min" };
  await setUntilCommit(tx, settings);
  const value = (column: string) => sql.ref(`v.${column}`);
  const order = columns.map((one) => (one.isText ? sql`${value(one.name)}::text collate "C"` : value(one.name)));
  await sql`
    declare dumped no scroll cursor for
    select ${sql.join(columns.map((one) => sql`to_json(${value(one.name)})::text as ${sql.id(one.name)}`))}
    from ${table} v where ${isChosen}
    order by ${sql.join(order)}
  `.execute(tx);
  const next = sql<Readonly<Record<string, string | null>>>`fetch ${sql.lit(BATCH_ROWS)} from dumped`;
  for (;;) {
    const { rows } = await next.execute(tx);
    if (rows.length > 0) yield rows.map((row) => columns.map((column) => row[column.name] ?? null));
    if (rows.length < BATCH_ROWS) break;
  }
  await sql`close dumped`.execute(tx);
}
