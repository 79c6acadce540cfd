// Reads views of schema bi for a dump: which views exist (from the catalogue), and their rows as exact text. All rows are read as they
// were at one moment, from first to last, a few at a time.

import { type RawBuilder, sql } from "kysely";
import type { Column, ColumnKind, Row, View } from "../dump/view.ts";
import type { Day } from "../usage/days.ts";
import type { Database } from "./connection/database.ts";
import { readSnapshot, type Tx } from "./connection/transaction.ts";

/** Columns of other types are dumped as text. */
const COLUMN_KINDS: Readonly<Record<string, ColumnKind>> = {
  date: "day",
  integer: "integer",
  bigint: "integer",
  numeric: "number",
  "timestamp with time zone": "instant",
  jsonb: "json",
  boolean: "json",
  "text[]": "json",
};

type CatalogView = { readonly view: string; readonly meaning: string; readonly columns: readonly CatalogColumn[] };
type CatalogColumn = { readonly name: string; readonly type: string; readonly meaning: string };

export async function listDumpViews(tx: Tx): Promise<readonly View[]> {
  const { rows } = await sql<CatalogView>`
    select c.relname as view, coalesce(obj_description(c.oid, 'pg_class'), '') as meaning,
      json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, null),
        'meaning', coalesce(col_description(c.oid, a.attnum), '')) order by a.attnum) as columns
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname = 'bi' and c.relkind = 'v'
    group by c.oid, c.relname
    order by c.relname collate "C"
  `.execute(tx);
  return rows.map(({ view, meaning, columns }) => ({ name: view, meaning, columns: columns.map(toColumn) }));
}

function toColumn({ name, type, meaning }: CatalogColumn): Column {
  return { name, kind: COLUMN_KINDS[type] ?? "text", meaning };
}

const BATCH_ROWS = 1_000;
const STATEMENT_SECONDS_MAX = 10 * 60;

/**
 * The transaction is never repeated after an error, because a part of the dump may have been written. While it is open, the database
 * keeps all replaced rows, so it is ended if no row is read for ten minutes. An aborted signal cancels the running statement.
 */
export async function withDumpTransaction<T>(
  db: Database,
  signal: AbortSignal,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const dump = async (tx: Tx) => {
    // By default a cursor is planned to return its first rows early; here all rows are read.
    const { rows } = await sql<{ pid: number }>`
      select pg_catalog.pg_backend_pid() as pid, pg_catalog.set_config('cursor_tuple_fraction', '1', true),
        pg_catalog.set_config('idle_in_transaction_session_timeout', '10min', true)
    `.execute(tx);
    let cancelled: Promise<unknown> | undefined;
    const cancel = () => {
      cancelled = sql`select pg_catalog.pg_cancel_backend(${rows[0]?.pid})`.execute(db).catch(() => {});
    };
    signal.addEventListener("abort", cancel, { once: true });
    try {
      signal.throwIfAborted();
      return await work(tx);
    } finally {
      signal.removeEventListener("abort", cancel);
      // Awaited before the transaction ends: after it a pooler may give the connection to another client, and a late cancellation would
      // hit that client's statement.
      await cancelled;
    }
  };
  return readSnapshot(db, dump, STATEMENT_SECONDS_MAX);
}

export async function* readDumpRows(tx: Tx, view: View, range: DayRange): AsyncGenerator<readonly Row[]> {
  await sql`declare dumped no scroll cursor for ${dumpQuery(view, range)}`.execute(tx);
  for (;;) {
    const { rows } = await sql<
      Readonly<Record<string, string | null>>
    >`fetch ${sql.lit(BATCH_ROWS)} from dumped`.execute(tx);
    if (rows.length > 0) yield rows.map((row): Row => view.columns.map(({ name }) => row[name] ?? null));
    if (rows.length < BATCH_ROWS) return;
  }
}

/** Both days are included. */
export type DayRange = { readonly from?: Day | undefined; readonly to?: Day | undefined };

type SqlExpression = RawBuilder<unknown>;

type DayColumns = { readonly columns: readonly string[]; readonly first: SqlExpression; readonly last: SqlExpression };

/**
 * Which columns hold the days of a view's rows: those of the first entry whose columns the view has. A row belongs to a range if at
 * least one of its days is in the range.
 */
const DAY_COLUMNS: readonly DayColumns[] = [
  dayIn("usage_date", sql`v.usage_date`),
  dayIn("x_UsageDate", sql`v."x_UsageDate"`),
  { columns: ["from_date", "to_date"], first: sql`v.from_date`, last: sql`v.to_date` },
  dayIn("taken_at", sql`(v.taken_at at time zone 'UTC')::date`),
  dayIn("started_at", sql`(v.started_at at time zone 'UTC')::date`),
];

function dayIn(column: string, day: SqlExpression): DayColumns {
  return { columns: [column], first: day, last: day };
}

const PROJECT_COLUMNS: readonly string[] = ["project_id", "SubAccountId"];

/** Whether rows can be chosen by their day. */
export function hasDayColumn(view: View): boolean {
  return dayColumnsOf(view) !== undefined;
}

/**
 * Sorted by project, day, the texts in the order of the columns, then the rest: the same rows have the same order in every
 * database, whatever its locale.
 */
function dumpQuery(view: View, { from, to }: DayRange): RawBuilder<Record<string, string | null>> {
  const days = dayColumnsOf(view);
  const conditions = [
    sql`true`,
    ...(days && from !== undefined ? [sql`${days.last} >= ${from}::date`] : []),
    ...(days && to !== undefined ? [sql`${days.first} <= ${to}::date`] : []),
  ];
  const texts = view.columns.filter(({ kind }) => kind === "text");
  const projects = texts.filter(({ name }) => PROJECT_COLUMNS.includes(name));
  const rest = view.columns.filter(({ kind }) => kind !== "text");
  const order = [...projects.map(sortKey), ...(days ? [days.first] : []), ...texts.map(sortKey), ...rest.map(sortKey)];
  return sql`
    select ${sql.join(view.columns.map((column) => sql`${textExpression(column)} as ${sql.id(column.name)}`))}
    from ${sql.id("bi", view.name)} v
    where ${sql.join(conditions, sql` and `)}
    order by ${sql.join(order)}
  `;
}

function dayColumnsOf({ columns }: View) {
  const names = new Set(columns.map(({ name }) => name));
  return DAY_COLUMNS.find((days) => days.columns.every((name) => names.has(name)));
}

function sortKey(column: Column): SqlExpression {
  return column.kind === "text" ? sql`${columnRef(column)}::text collate pg_catalog."C"` : columnRef(column);
}

function textExpression(column: Column): SqlExpression {
  const value = columnRef(column);
  switch (column.kind) {
    case "day":
      return sql`to_char(${value}, 'YYYY-MM-DD')`;
    case "instant":
      return sql`to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
    case "json":
      return sql`to_json(${value})::text`;
    default:
      return sql`${value}::text`;
  }
}

function columnRef({ name }: Column): SqlExpression {
  return sql.ref(`v.${name}`);
}
