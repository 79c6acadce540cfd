// Reads which series there are and how each day of them stands: what a report's numbers rest on.

import { sql } from "kysely";
import { dayCount, type Window } from "../usage/day.ts";
import type { Grouping } from "../usage/series.ts";
import { DAY } from "./report-day.ts";
import type { Tx } from "./transaction.ts";

export type ReportSeries = {
  readonly seriesId: number;
  readonly projectId: string;
  readonly project: string;
  readonly grouping: Grouping;
  readonly filter: string;
  /** All usage: the filter has no conditions. */
  readonly unfiltered: boolean;
  /** Still configured. */
  readonly active: boolean;
  /** A letter of report-day.ts for each day of the period before. */
  readonly daysBefore: string;
  /** A letter for each day of the period. */
  readonly days: string;
};

/** All series that are still configured, and of the others those with a day in one of the periods. Ordered by their names. */
export async function reportSeries(tx: Tx, before: Window, period: Window): Promise<readonly ReportSeries[]> {
  const { rows } = await sql<Omit<ReportSeries, "daysBefore">>`
    with slice as (
      select project_id, "grouping", filter, usage_date,
        case when status = 'complete' and finality = 'open' then ${DAY.open} else left(status, 1) end as letter,
        usage_date - coalesce(lag(usage_date) over (
          partition by project_id, "grouping", filter order by usage_date), ${before.start}::date - 1) as days_since
      from bi.coverage where usage_date between ${before.start}::date and ${period.end}::date
    ), covered as materialized (
      select project_id, "grouping", filter,
        string_agg(repeat(${DAY.unread}, days_since - 1) || letter, '' order by usage_date) as days
      from slice group by project_id, "grouping", filter
    )
    select s.series_id as "seriesId", s.project_id as "projectId", s.project, s."grouping", s.filter,
      s.filter_key = '{}' as unfiltered, s.retired_at is null as active, coalesce(c.days, '') as days
    from usage_export.series s
    left join covered c on c.project_id = s.project_id and c."grouping" = s."grouping" and c.filter = s.filter
    where s.superseded_at is null and (s.retired_at is null or c.days is not null)
    order by s.project collate "C", s."grouping", s.filter collate "C", s.project_id
  `.execute(tx);
  const countBefore = dayCount(before);
  return rows.map((row) => {
    const days = row.days.padEnd(countBefore + dayCount(period), DAY.unread);
    return { ...row, daysBefore: days.slice(0, countBefore), days: days.slice(countBefore) };
  });
}
