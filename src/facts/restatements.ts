// The totals that changed after the first reading of their day since it was over, and windows that end too early to see all changes.

import type { Day } from "../usage/days.ts";
import { TOTAL_GROUPINGS } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import type { SeriesName } from "../usage/series.ts";
import type { CoverageScope } from "./coverage.ts";
import { findProjects, type Run } from "./scope.ts";
import { literal, projectConditions, within } from "./sql.ts";

export type Restatement = SeriesName & {
  readonly day: Day;
  /** Null for no value, and of a total. */
  readonly group: string | null;
  readonly metric: string;
  /** Null if there was no row, or no such number in it. */
  readonly old: string | null;
  readonly new: string | null;
  readonly seenAt: Date;
};

export type Restatements = {
  readonly count: number;
  /** The newest first; at most 20. */
  readonly newest: readonly Restatement[];
};

const NEWEST_MAX = 20;

/**
 * Of the total of each project or, where that is not read, of the first grouping that adds up to it. A change before the first reading of a
 * day that is over is left out: the numbers of a day that lasts grow. Throws InvalidQuestion if there is no such project.
 */
export async function restatements(run: Run, { period, projects }: CoverageScope): Promise<Restatements> {
  const ofProjects = projectConditions({ projectIds: projects && (await findProjects(run, projects)) });
  const rows = await run<Restatement & { readonly count: number }>(`
with total as (
  select distinct on (project_id) project_id, "grouping", filter from bi.series
  where ${["source = 'usage' and unfiltered and active", ...ofProjects].join(" and ")}
  order by project_id, array_position(array[${TOTAL_GROUPINGS.map(literal).join(", ")}], "grouping"), "grouping"
)
select r.project, r."grouping", r.filter, r.usage_date as day, r.group_value as "group", r.metric,
  trim_scale(r.old_value)::text as old, trim_scale(r.new_value)::text as new, r.seen_at as "seenAt", (count(*) over ())::integer as count
from total
join bi.restatements r using (project_id, "grouping", filter)
where r.source = 'usage' and r.${within(period)} and r.metric in (${METRICS.map(literal).join(", ")})
  -- No view has when a day was first read after it was over.
  and r.seen_at > (
    select sl.closed_at from usage_export.slice sl join usage_export.series s using (series_id)
    where s.source = 'usage' and s.superseded_at is null and s.project_id = r.project_id and s."grouping" = r."grouping"
      and s.filter = r.filter and sl.usage_date = r.usage_date
  )
order by r.seen_at desc, r.usage_date desc, r.project collate "C", r.group_value collate "C", r.metric
limit ${NEWEST_MAX}`);
  return { count: rows[0]?.count ?? 0, newest: rows.map(({ count: _, ...one }) => one) };
}

/** A window after whose last reading of a day usage still changed. */
export type ShortWindow = { readonly windowDays: number; readonly days: number };

const LATE_DAYS_MIN = 7;

/** Of the last 70 days: at least 7 changed when their window read them for the last time, so that later changes were probably not seen. */
export function shortWindows(run: Run): Promise<readonly ShortWindow[]> {
  return run<ShortWindow>(`
select s.window_days as "windowDays", count(distinct r.usage_date)::integer as days
from usage_export.series s
join usage_export.superseded_row r using (series_id)
where s.source = 'usage' and s.filter_key = '{}' and s.retired_at is null and s.superseded_at is null
  and r.usage_date > (now() at time zone 'UTC')::date - 70
  and (r.superseded_at at time zone 'UTC')::date - r.usage_date >= s.window_days
group by s.window_days having count(distinct r.usage_date) >= ${LATE_DAYS_MIN} order by s.window_days`);
}
