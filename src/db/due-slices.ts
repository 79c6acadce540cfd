// Which slices are due and not complete, as the views show it to everybody.

import { sql } from "kysely";
import type { DueSlice } from "../usage/plan-catch-up.ts";
import type { Tx } from "./transaction.ts";

export async function dueSlices(tx: Tx, seriesIds: readonly number[]): Promise<readonly DueSlice[]> {
  const { rows } = await sql<{
    series_id: number;
    day: string;
    status: DueSlice["status"];
    failures: number;
    attempted_at: Date | null;
  }>`
    select s.series_id, to_char(day, 'YYYY-MM-DD') as day, case when sl.series_id is null then 'missing' else 'failed' end as status,
      coalesce(sl.failures, 0) as failures, sl.attempted_at
    from usage_export.due_series s
    cross join generate_series(s.due_from::timestamp, s.due_until::timestamp, interval '1 day') as day
    left join usage_export.slice sl on sl.series_id = s.series_id and sl.usage_date = day::date
    where s.series_id = any(${seriesIds}::integer[]) and (sl.series_id is null or sl.status = 'failed')
    order by day desc, s.series_id
  `.execute(tx);
  return rows.map(({ series_id, day, status, failures, attempted_at }) => ({
    seriesId: series_id,
    day,
    status,
    failures,
    attemptedAt: attempted_at ?? undefined,
  }));
}
