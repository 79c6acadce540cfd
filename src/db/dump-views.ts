// Reads which views there are to dump, from the catalogue, so that a new one needs nothing here.

import { sql } from "kysely";
import type { Column, ColumnKind, View } from "../dump/view.ts";
import type { Tx } from "./transaction.ts";

/** What is not here is dumped as its text. */
const KINDS: Readonly<Record<string, ColumnKind>> = {
  date: "day",
  integer: "integer",
  bigint: "integer",
  numeric: "number",
  "timestamp with time zone": "instant",
  jsonb: "json",
  boolean: "json",
  "text[]": "json",
};

type Found = { readonly view: string; readonly meaning: string; readonly columns: readonly FoundColumn[] };
type FoundColumn = { readonly name: string; readonly type: string; readonly meaning: string };

export async function listViews(tx: Tx): Promise<readonly View[]> {
  const { rows } = await sql<Found>`
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

function toColumn({ name, type, meaning }: FoundColumn): Column {
  return { name, kind: KINDS[type] ?? "text", meaning };
}
