// Records why slices have no newer numbers than they have.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { Database } from "./database.ts";
import { lockSlices } from "./slices.ts";
import { storableText } from "./storable-text.ts";
import { inTransaction } from "./transaction.ts";

export type Failure = {
  readonly seriesId: number;
  readonly days: readonly Day[];
  /** The number of the failed fetch. A slice that a later fetch has answered is not changed. */
  readonly fetchNo: number;
  readonly reason: string;
  /** Left out if unknown, as after a process ended: the slice then keeps the code it has. */
  readonly code?: string | undefined;
  /** Whether the run tries again by itself: only the last try counts as a failure of the run. */
  readonly triedAgain?: boolean;
};

/** The last good rows stay as they are; only the state changes. */
export async function recordFailure(
  db: Database,
  { seriesId, days, fetchNo, reason, code, triedAgain = false }: Failure,
): Promise<void> {
  const text = storableText(reason);
  await inTransaction(db, async (tx) => {
    await lockSlices(
      tx,
      days.map((day) => ({ seriesId, day })),
    );
    // A row inserted only for its lock has no error yet, so its failure starts now.
    await sql`
      update usage_export.slice set status = 'failed', error = ${text}, attempted_at = now(),
        error_code = case when status = 'failed' then coalesce(${code ?? null}, error_code) else ${code ?? null} end,
        failing_since = case when status = 'failed' and error is not null then coalesce(failing_since, attempted_at) else now() end,
        failures = failures + ${triedAgain ? 0 : 1}
      where series_id = ${seriesId} and usage_date = any(${days}::text[]::date[])
        and greatest(fetch_no, suspect_fetch_no) < ${fetchNo}
    `.execute(tx);
  });
}
