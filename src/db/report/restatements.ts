// Reads the numbers that changed after the first reading of their day since it was over, and how much of a day's usage was known
// after how many days.

import { sql } from "kysely";
import type { MetricTotal, Restatement, Restatements } from "../../report/report-data.ts";
import type { Window } from "../../usage/days.ts";
import type { CurvePoint } from "../../usage/plan.ts";
import type { Series } from "../../usage/series.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import type { ReportSeries } from "./sources.ts";

const LARGEST_MAX = 20;

type RestatementsRow = {
  readonly byDaysLate: Restatements["byDaysLate"];
  readonly largest: readonly (Omit<Restatement, "seenAt"> & { readonly seenAt: string })[];
};

/**
 * The size of a change is its share of the total of its metric. So changes of hours and of characters can be compared, and a small
 * number that doubles is not a large change. A change before the first reading of a day that is over is left out: the numbers of a
 * day that lasts grow.
 */
export async function readRestatements(
  tx: Tx,
  sources: readonly ReportSeries[],
  { start, end }: Window,
  totals: readonly MetricTotal[],
): Promise<Restatements> {
  const { rows } = await sql<RestatementsRow>`
    with change as materialized (
      select r.project, r."grouping", r.filter, r.usage_date, r.group_value, r.metric, r.old_value, r.new_value,
        r.revision, r.seen_at, r.days_late
      from usage_export.series s
      join bi.restatements r
        on r.source = s.source and r.project_id = s.project_id and r."grouping" = s."grouping" and r.filter = s.filter
      -- For closed_at, which no view has: the time at which a day was first read after it was over.
      join usage_export.slice sl on sl.series_id = s.series_id and sl.usage_date = r.usage_date
      where s.series_id = any(${sources.map(({ seriesId }) => seriesId)}::integer[])
        and r.usage_date between ${start}::date and ${end}::date and r.seen_at > sl.closed_at
        and r.metric = any(${totals.map(({ metric }) => metric)}::text[])
    )
    select
      (
        select coalesce(json_agg(late order by "daysLate"), '[]')
        from (select days_late as "daysLate", count(*) as numbers from change group by days_late) late
      ) as "byDaysLate",
      (
        select coalesce(json_agg(large), '[]')
        from (
          select project, "grouping", filter, usage_date as day, group_value as "group", metric,
            old_value::text as old, new_value::text as new, seen_at as "seenAt"
          from change
          left join unnest(${totals.map(({ metric }) => metric)}::text[], ${totals.map(({ amount }) => amount)}::numeric[])
            as total (metric, amount) using (metric)
          order by abs(coalesce(new_value, 0) - coalesce(old_value, 0)) / nullif(total.amount, 0) desc nulls last, usage_date desc, project collate "C", group_value collate "C", metric, revision desc
          limit ${LARGEST_MAX}
        ) large
      ) as largest
  `.execute(tx);
  const { byDaysLate = [], largest = [] } = rows[0] ?? {};
  return {
    sources: sources.map(({ project, grouping }) => ({ project, grouping })),
    metrics: totals.map(({ metric }) => metric),
    byDaysLate,
    largest: largest.map((one) => ({ ...one, seenAt: new Date(one.seenAt) })),
  };
}

/** Each curve is of one series and metric. Scans the whole history of these series, so ask for few and small ones. */
export async function restatementCurves(
  db: Database,
  series: readonly Series[],
): Promise<readonly (readonly CurvePoint[])[]> {
  const { rows } = await sql<CurvePoint & { curve: string }>`
    select days_after as "daysAfter", known_share::double precision as "knownShare", days,
      concat_ws(' ', project_id, "grouping", filter, metric) as curve
    from bi.restatement_curve
    where (project_id, "grouping", filter) in (
      select * from unnest(
        ${series.map(({ project }) => project.id)}::text[], ${series.map(({ grouping }) => grouping)}::text[],
        ${series.map(({ filter }) => filter.name)}::text[]
      )
    )
  `.execute(db);
  return [...Map.groupBy(rows, ({ curve }) => curve).values()];
}
