// The stored rows, and the coverage of their slices.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";

/** All rows, with the system columns that change whenever a row is written, even with the same values. */
export async function rowsAsWritten(db: Database): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { rows } = await sql<Readonly<Record<string, unknown>>>`
    select xmin::text, ctid::text, r.* from usage_export.snapshot_row r order by series_id, usage_date, group_id
  `.execute(db);
  return rows;
}

type SliceStatus = { readonly status: string; readonly error: string | null };

/** The status of each filter, grouping or project, for tests in which all days of a window have the same status. */
export async function lastCoverage(
  db: Database,
  by: "filter" | "grouping" | "project" = "filter",
): Promise<Readonly<Record<string, SliceStatus>>> {
  const { rows } = await sql<SliceStatus & { readonly name: string }>`
    select distinct ${sql.ref(by)} as name, status, error from bi.coverage
  `.execute(db);
  return Object.fromEntries(rows.map(({ name, ...status }) => [name, status]));
}
