// Stores slices of past days, as nightly exports would leave them.

import { type RawBuilder, sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";

export type Stored = {
  /** The number of days, the last of which is yesterday. */
  readonly days: number;
  /** In SQL: whether the day `back` days ago is stored. Left out: every day is. */
  readonly isStored?: RawBuilder<boolean>;
  /** The number of rows of a grouped slice. Left out: 0. */
  readonly rows?: number;
};

/** Makes the days of every series due, stores them as complete, and marks every job as scheduled up to now. */
export async function storeSlices(db: Database, { days, isStored = sql`true`, rows = 0 }: Stored): Promise<void> {
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at, content_hash, rows)
    select series_id, current_date - back, 'complete', 1, now(), current_date - back + interval '26 hours',
      repeat('0123456789abcdef', 4), case "grouping" when 'none' then least(1, ${sql.lit(rows)}) else ${sql.lit(rows)} end
    from generate_series(${sql.lit(days)}, 1, -1) as back cross join usage_export.series
    where ${isStored}
  `.execute(db);
  await sql`
    update usage_export.series
    set due_from = current_date - ${sql.lit(days)}, due_through = current_date - 1, next_due_at = now() + interval '1 day'
  `.execute(db);
  await sql`update usage_export.job set scheduled_through = now()`.execute(db);
  // The server would do this by itself after a while.
  await sql`analyze usage_export.slice, usage_export.series`.execute(db);
}
