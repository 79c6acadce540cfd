// Reads how complete each series is. It is asked every few seconds by every replica, so it looks at each slice once; the
// views say the same, in several passes.

import { sql } from "kysely";
import { type Figure, figure } from "./figure.ts";
import type { Tx } from "./transaction.ts";

type SeriesRow = {
  readonly project: string;
  readonly grouping: string;
  readonly filter: string;
  readonly missing: number;
  readonly failed: number;
  readonly suspect: number;
  readonly freshThrough: number | null;
};

/**
 * Missing slices are due days without a slice, or with one that was not read since its day was over. A series is fresh through
 * the last day before its first hole. Usually there is no hole: then there are as many slices read well as days. Otherwise the
 * hole is searched for, which is rare and slow.
 */
export async function seriesFigures(tx: Tx): Promise<readonly Figure[]> {
  const { rows } = await sql<SeriesRow>`
    with counted as (
      select sl.series_id, count(*) filter (where due.due and not due.unclosed)::integer as present,
        count(*) filter (where due.due and not due.unclosed and sl.fetched_at is not null)::integer as read,
        max(sl.usage_date) filter (where due.due and not due.unclosed and sl.fetched_at is not null) as last_read,
        count(*) filter (where sl.status = 'failed')::integer as failed,
        count(*) filter (where sl.status = 'suspect')::integer as suspect
      from usage_export.slice sl
      left join usage_export.due_series d using (series_id)
      cross join lateral (
        select sl.usage_date between d.due_from and d.due_until as due,
          sl.status = 'complete' and sl.closed_at is null and sl.usage_date <= d.closing_until as unclosed
      ) due
      group by sl.series_id
    )
    select s.project, s."grouping", s.filter, coalesce(c.failed, 0) as failed, coalesce(c.suspect, 0) as suspect,
      coalesce(d.due_until - d.due_from + 1 - coalesce(c.present, 0), 0) as missing,
      extract(epoch from (case
        when coalesce(c.read, 0) = 0 then d.due_from - 1
        when c.read = c.last_read - d.due_from + 1 then c.last_read
        else (
          select min(day)::date - 1
          from generate_series(d.due_from::timestamp, d.due_until::timestamp, interval '1 day') as day
          where not exists (
            select from usage_export.slice sl
            where sl.series_id = s.series_id and sl.usage_date = day::date and sl.fetched_at is not null
              and not (sl.status = 'complete' and sl.closed_at is null and sl.usage_date <= d.closing_until)
          )
        )
      end)::timestamp at time zone 'UTC')::double precision as "freshThrough"
    from usage_export.series s
    left join usage_export.due_series d using (series_id)
    left join counted c using (series_id)
    where s.superseded_at is null and s.retired_at is null
  `.execute(tx);
  return rows.flatMap(({ project, grouping, filter, missing, failed, suspect, freshThrough }) => {
    const labels = { project, grouping, filter };
    return [
      ...figure("newest_complete_day_timestamp_seconds", labels, freshThrough),
      ...Object.entries({ missing, failed, suspect }).flatMap(([status, days]) =>
        figure("incomplete_slices", { ...labels, status }, days),
      ),
    ];
  });
}
