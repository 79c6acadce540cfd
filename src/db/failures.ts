// Records why slices have no newer numbers than they have.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { Database } from "./database.ts";
import { inTransaction } from "./transaction.ts";

export type Failure = {
  readonly seriesId: number;
  readonly days: readonly Day[];
  /** The number of the fetch that failed: a slice that a later one has completed is left alone. */
  readonly fetchNo: number;
  readonly reason: string;
};

const REASON_LENGTH_MAX = 1_000;

/** The last good rows stay as they are; only the state changes. */
export async function recordFailure(db: Database, { seriesId, days, fetchNo, reason }: Failure): Promise<void> {
  const text = reason.replaceAll("\0", "").slice(0, REASON_LENGTH_MAX);
  await inTransaction(db, (tx) =>
    sql`
      insert into usage_export.slice as sl (series_id, usage_date, status, error)
      select ${seriesId}::integer, day::date, 'failed', ${text}::text from unnest(${days}::text[]) as day order by day
      on conflict (series_id, usage_date) do update
      set status = 'failed', error = excluded.error, attempted_at = excluded.attempted_at
      where sl.fetch_no < ${fetchNo}
    `.execute(tx),
  );
}
