// What is known of the slices of many series.

import { sql } from "kysely";
import type { Day, Window } from "../usage/day.ts";
import type { KnownSlices, SliceStatus } from "../usage/plan-backfill.ts";
import { filterKey, type Series, seriesKey } from "../usage/series.ts";
import type { Database } from "./database.ts";

/** A past day that was read only while it lasted. */
const IS_UNCLOSED = sql`
  sl.status = 'complete' and sl.closed_at is null and sl.usage_date < (now() at time zone 'UTC')::date
`;

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
    select wanted.index::integer as index, json_object_agg(
      to_char(sl.usage_date, 'YYYY-MM-DD'), case when ${IS_UNCLOSED} then 'missing' else sl.status end
    ) as days
    from ${slicesOf(series)}
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

/** For a series whose answers have days: the oldest stored day on or after the given one, and whether any such day has rows. */
export async function storedDays(
  db: Database,
  seriesId: number,
  from: Day | undefined,
): Promise<{ readonly oldest: Day | undefined; readonly hasRows: boolean }> {
  const { rows } = await sql<{ oldest: Day | null; hasRows: boolean | null }>`
    select to_char(min(sl.usage_date) filter (where sl.usage_date >= ${from ?? null}::date), 'YYYY-MM-DD') as oldest,
      bool_or(sl.rows > 0) as "hasRows"
    from usage_export.slice sl
    join usage_export.series s using (series_id)
    where sl.series_id = ${seriesId} and sl.fetch_no > 0 and s.undated_since is null
  `.execute(db);
  return { oldest: rows[0]?.oldest ?? undefined, hasRows: rows[0]?.hasRows ?? false };
}

/**
 * By seriesKey, the days before the given one that were read only while they lasted, or whose newest answer is in doubt. A
 * doubt about a condition that the service ignores does not count: reading the day again can't settle it.
 */
export async function unsettledDays(
  db: Database,
  series: readonly Series[],
  before: Day,
): Promise<ReadonlyMap<string, readonly Day[]>> {
  const { rows } = await sql<{ index: number; day: Day }>`
    select wanted.index::integer as index, to_char(sl.usage_date, 'YYYY-MM-DD') as day
    from ${slicesOf(series)}
    where sl.usage_date < ${before}::date
      and (${IS_UNCLOSED} or (sl.status = 'suspect' and sl.suspect_why is distinct from 'filter-ignored'))
  `.execute(db);
  const days = new Map<string, Day[]>();
  for (const { index, day } of rows) {
    const one = series[index - 1];
    if (one) days.set(seriesKey(one), [...(days.get(seriesKey(one)) ?? []), day]);
  }
  return days;
}

function slicesOf(series: readonly Series[]) {
  return sql`
    unnest(
      ${series.map(({ project }) => project.id)}::text[], ${series.map(({ grouping }) => grouping)}::text[],
      ${series.map(({ filter }) => filterKey(filter))}::text[]
    ) with ordinality as wanted (project_id, "grouping", filter_key, index)
    join usage_export.series s using (project_id, "grouping", filter_key)
    join usage_export.slice sl using (series_id)
  `;
}
