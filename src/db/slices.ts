// Slices as they are stored: what is visible of a series on a day, and the lock that a writer takes on it.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { StoredSlice } from "../usage/slice.ts";
import type { Tx } from "./transaction.ts";

export type StoredSlices = ReadonlyMap<Day, StoredSlice>;

/** What is stored of these days at this moment, without waiting for anyone. */
export async function storedSlices(tx: Tx, seriesId: number, days: readonly Day[]): Promise<StoredSlices> {
  return readSlices(tx, seriesId, days, false);
}

/**
 * The same, and nobody else writes these days before the transaction ends. Locking needs a row, so one is made where there
 * is none. All writers make the rows first and lock them then, both in the order of days: none ever waits for another that
 * waits for it.
 */
export async function lockSlices(tx: Tx, seriesId: number, days: readonly Day[]): Promise<StoredSlices> {
  await sql`
    insert into usage_export.slice (series_id, usage_date, status)
    select ${seriesId}::integer, day::date, 'failed' from unnest(${days}::text[]) as day order by day
    on conflict do nothing
  `.execute(tx);
  return readSlices(tx, seriesId, days, true);
}

async function readSlices(tx: Tx, seriesId: number, days: readonly Day[], lock: boolean): Promise<StoredSlices> {
  const query = tx
    .selectFrom("usage_export.slice")
    .select(["usage_date", "fetch_no", "content_hash", "rows", "suspect_run"])
    .where("series_id", "=", seriesId)
    .where(sql<boolean>`usage_date = any(${days}::text[]::date[])`)
    .orderBy("usage_date");
  const rows = await (lock ? query.forUpdate() : query).execute();
  return new Map(
    rows.map((row) => [
      row.usage_date,
      {
        fetchNo: Number(row.fetch_no),
        contentHash: row.content_hash ?? undefined,
        rows: row.rows,
        suspectRun: row.suspect_run ?? undefined,
      },
    ]),
  );
}
