// Which slices are due and not complete, as the views show it to everybody.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { DueSlice } from "../usage/plan-catch-up.ts";
import type { Tx } from "./transaction.ts";

/**
 * A doubt whose confirmation the window does not bring any more: the first doubtful answer came with the last run that read the
 * day. A condition that the service ignores is not confirmed by asking again.
 */
function isLeftInDoubt(dueSeries: string) {
  return sql`(
    sl.status = 'suspect' and sl.suspect_why is distinct from 'filter-ignored'
    and coalesce(sl.usage_date < (now() at time zone 'UTC')::date - ${sql.ref(`${dueSeries}.window_days`)}, false)
  )`;
}

/** Every worker asks this every minute, and mostly nothing is amiss: days are gone through one by one only where their number tells that some are. */
export async function dueSlices(tx: Tx, seriesIds: readonly number[]): Promise<readonly DueSlice[]> {
  const { rows } = await sql<{
    series_id: number;
    day: string;
    status: DueSlice["status"];
    failures: number;
    attempted_at: Date | null;
    suspect_since: Date | null;
  }>`
    with there as materialized (
      select sl.series_id,
        count(*) filter (
          where sl.status <> 'failed' and sl.usage_date between d.due_from and d.due_until
            and (sl.closed_at is not null or sl.usage_date > d.closing_until) and not ${isLeftInDoubt("d")}
        ) as days
      from usage_export.slice sl
      join usage_export.due_series d using (series_id)
      group by sl.series_id
    ),
    short as materialized (
      select d.series_id, d.due_from, d.due_until, d.closing_until, d.window_days
      from usage_export.due_series d
      left join there using (series_id)
      where d.series_id = any(${seriesIds}::integer[]) and d.due_until - d.due_from + 1 > coalesce(there.days, 0)
    )
    select s.series_id, to_char(day, 'YYYY-MM-DD') as day,
      case when sl.series_id is null or sl.status = 'complete' then 'missing' else sl.status end as status,
      coalesce(sl.failures, 0) as failures, sl.attempted_at, sl.suspect_since
    from short s
    cross join generate_series(s.due_from::timestamp, s.due_until::timestamp, interval '1 day') as day
    left join usage_export.slice sl on sl.series_id = s.series_id and sl.usage_date = day::date
    where sl.series_id is null or sl.status = 'failed'
      or (sl.closed_at is null and sl.usage_date <= s.closing_until) or ${isLeftInDoubt("s")}
    order by day desc, s.series_id
  `.execute(tx);
  return rows.map(({ series_id, day, status, failures, attempted_at, suspect_since }) => ({
    seriesId: series_id,
    day,
    status,
    failures,
    attemptedAt: attempted_at ?? undefined,
    doubtedAt: suspect_since ?? undefined,
  }));
}

/**
 * The slices whose newest reading failed, due or not: a night that was asked for without a window, and a day that a person
 * picked, are due by nobody's schedule, and not complete either.
 */
export async function failedSlices(
  tx: Tx,
  seriesIds: readonly number[],
): Promise<readonly { readonly seriesId: number; readonly day: Day; readonly status: "failed" }[]> {
  const { rows } = await sql<{ series_id: number; day: Day }>`
    select series_id, to_char(usage_date, 'YYYY-MM-DD') as day from usage_export.slice
    where status = 'failed' and series_id = any(${seriesIds}::integer[])
    order by usage_date desc, series_id
  `.execute(tx);
  return rows.map(({ series_id, day }) => ({ seriesId: series_id, day, status: "failed" }));
}
