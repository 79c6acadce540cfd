// What is known of the slices of many series.

import { sql } from "kysely";
import type { Window } from "../usage/day.ts";
import type { KnownSlices, SliceStatus } from "../usage/plan-backfill.ts";
import { filterKey, type Series, seriesKey } from "../usage/series.ts";
import type { Database } from "./database.ts";

/**
 * One row comes back for each series, whatever the number of days. A series that was never registered, or is hidden now
 * and would be shown again, is looked up by what it is: nothing is written.
 */
export async function sliceStatuses(
  db: Database,
  series: readonly Series[],
  { start, end }: Window,
): Promise<KnownSlices> {
  const { rows } = await sql<{ index: number; days: Readonly<Record<string, SliceStatus>> }>`
    select wanted.index::integer as index, json_object_agg(to_char(sl.usage_date, 'YYYY-MM-DD'), sl.status) as days
    from unnest(
      ${series.map(({ project }) => project.id)}::text[], ${series.map(({ grouping }) => grouping)}::text[],
      ${series.map(({ filter }) => filterKey(filter))}::text[]
    ) with ordinality as wanted (project_id, "grouping", filter_key, index)
    join usage_export.series s using (project_id, "grouping", filter_key)
    join usage_export.slice sl using (series_id)
    where sl.usage_date between ${start}::date and ${end}::date
    group by wanted.index
  `.execute(db);
  return new Map(
    rows.flatMap(({ index, days }) => {
      const one = series[index - 1];
      return one ? [[seriesKey(one), days] as const] : [];
    }),
  );
}
