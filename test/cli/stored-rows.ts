// What a run did to the stored rows, and what coverage says of it.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";

/** With what changes whenever a row is written, be it with the same values. */
export async function rowsAsWritten(db: Database): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { rows } = await sql<Readonly<Record<string, unknown>>>`
    select xmin::text, ctid::text, r.* from usage_export.snapshot_row r order by series_id, usage_date, group_id
  `.execute(db);
  return rows;
}

type Fate = { readonly status: string; readonly error: string | null };

/** By filter, grouping or project; for tests in which every day of a window has the same fate. */
export async function lastCoverage(
  db: Database,
  by: "filter" | "grouping" | "project" = "filter",
): Promise<Readonly<Record<string, Fate>>> {
  const { rows } = await sql<Fate & { readonly name: string }>`
    select distinct ${sql.ref(by)} as name, status, error from bi.coverage
  `.execute(db);
  return Object.fromEntries(rows.map(({ name, ...fate }) => [name, fate]));
}
