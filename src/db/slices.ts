// Slices as they are stored: what is visible of a series on a day, and the lock that a writer takes on it.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import { METRICS } from "../usage/metrics.ts";
import type { DoubtKind, StoredSlice, Totals } from "../usage/slice.ts";
import type { Database } from "./database.ts";
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
  readonly suspect_why: DoubtKind | null;
  readonly suspect_since: Date | null;
  readonly suspect_fetch_no: string | number | null;
};

async function readSlices(tx: Tx, slices: readonly SliceRef[], lock: boolean): Promise<StoredSlices> {
  const { rows } = await sql<SliceRow>`
    select sl.series_id, sl.usage_date, sl.fetch_no, sl.content_hash, sl.rows, sl.suspect_run, sl.suspect_why,
      sl.suspect_since, sl.suspect_fetch_no
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
        doubt: doubtOf(row),
      },
    ]),
  );
}

function doubtOf({ suspect_run, suspect_why, suspect_since, suspect_fetch_no }: SliceRow): StoredSlice["doubt"] {
  if (suspect_run === null || suspect_why === null || suspect_since === null) return undefined;
  return { kind: suspect_why, runId: suspect_run, since: suspect_since, fetchNo: Number(suspect_fetch_no) };
}

/** By `sliceKey`, the sums over the visible rows of these slices. They are doubles, for comparing orders of magnitude. */
export async function sumSlices(tx: Tx, slices: readonly SliceRef[]): Promise<ReadonlyMap<string, Totals>> {
  if (slices.length === 0) return new Map();
  const sums = sql.join(METRICS.map((metric) => sql`sum(r.${sql.ref(metric)})::text`));
  // The sums are computed slice by slice, whatever number of rows the planner expects.
  const { rows } = await sql<{ series_id: number; usage_date: Day; sums: readonly (string | null)[] }>`
    select wanted.series_id, wanted.usage_date, total.sums
    from ${wanted(slices)}
    cross join lateral (
      select array[${sums}] as sums from usage_export.snapshot_row r
      where r.series_id = wanted.series_id and r.usage_date = wanted.usage_date and not r.gone
    ) total
  `.execute(tx);
  return new Map(
    rows.map(({ series_id, usage_date, sums }) => [
      sliceKey({ seriesId: series_id, day: usage_date }),
      sums.map((sum) => (sum === null ? undefined : Number(sum))),
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

/** Whether the newest complete day of the series has no rows. */
export async function isNewestEmpty(db: Database, seriesId: number): Promise<boolean> {
  const { rows } = await sql<{ rows: number }>`
    select rows from usage_export.slice where series_id = ${seriesId} and status = 'complete'
    order by usage_date desc limit 1
  `.execute(db);
  return rows[0]?.rows === 0;
}
