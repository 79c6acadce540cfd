// The totals that changed after the first reading of their day since it was over, and how much of a day's usage is known after how many days.

import type { Day } from "../usage/days.ts";
import { TOTAL_GROUPINGS } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import type { Series, SeriesName } from "../usage/series.ts";
import type { CurvePoint } from "../usage/window-advice.ts";
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

/** Each curve is of one series and metric. Scans the whole history of these series, so ask for few and small ones. */
export async function restatementCurves(
  run: Run,
  series: readonly Series[],
): Promise<readonly (readonly CurvePoint[])[]> {
  if (series.length === 0) return [];
  const keys = series.map(
    ({ project, grouping, filter }) => `(${[project.id, grouping, filter.name].map(literal).join(", ")})`,
  );
  const rows = await run<CurvePoint & { curve: string }>(`
select days_after as "daysAfter", known_share::double precision as "knownShare", days,
  concat_ws(' ', project_id, "grouping", filter, metric) as curve
from bi.restatement_curve where (project_id, "grouping", filter) in (${keys.join(", ")})`);
  return [...Map.groupBy(rows, ({ curve }) => curve).values()];
}
