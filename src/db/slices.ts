// Slices as they are stored: what is visible of a series on a day, and the lock that a writer takes on it.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { StoredSlice } from "../usage/slice.ts";
import type { Tx } from "./transaction.ts";

export type SliceRef = { readonly seriesId: number; readonly day: Day };

/** By `sliceKey`. */
export type StoredSlices = ReadonlyMap<string, StoredSlice>;

export function sliceKey({ seriesId, day }: SliceRef): string {
  return `${seriesId} ${day}`;
}

/** What is stored of these slices at this moment, without waiting for anyone. */
export async function storedSlices(tx: Tx, slices: readonly SliceRef[]): Promise<StoredSlices> {
  return readSlices(tx, slices, false);
}

/**
 * The same, and nobody else writes these slices before the transaction ends. Locking needs a row, so one is made where there
 * is none. All who lock make the rows first and lock them then, both in one order: of them none ever waits for another that
 * waits for it.
 */
export async function lockSlices(tx: Tx, slices: readonly SliceRef[]): Promise<StoredSlices> {
  if (slices.length === 0) return new Map();
  await sql`
    insert into usage_export.slice (series_id, usage_date, status)
    select series_id, usage_date, 'failed' from ${wanted(slices)} order by series_id, usage_date
    on conflict do nothing
  `.execute(tx);
  return readSlices(tx, slices, true);
}

type SliceRow = {
  readonly series_id: number;
  readonly usage_date: Day;
  readonly fetch_no: string | number;
  readonly content_hash: string | null;
  readonly rows: number;
  readonly suspect_run: string | null;
};

async function readSlices(tx: Tx, slices: readonly SliceRef[], lock: boolean): Promise<StoredSlices> {
  const { rows } = await sql<SliceRow>`
    select sl.series_id, sl.usage_date, sl.fetch_no, sl.content_hash, sl.rows, sl.suspect_run
    from ${wanted(slices)} join usage_export.slice sl using (series_id, usage_date)
    order by sl.series_id, sl.usage_date ${lock ? sql`for update of sl` : sql``}
  `.execute(tx);
  return new Map(
    rows.map((row) => [
      sliceKey({ seriesId: row.series_id, day: row.usage_date }),
      {
        fetchNo: Number(row.fetch_no),
        contentHash: row.content_hash ?? undefined,
        rows: row.rows,
        suspectRun: row.suspect_run ?? undefined,
      },
    ]),
  );
}

function wanted(slices: readonly SliceRef[]) {
  return sql`
    unnest(
      ${slices.map(({ seriesId }) => seriesId)}::integer[], ${slices.map(({ day }) => day)}::text[]::date[]
    ) as wanted (series_id, usage_date)
  `;
}
