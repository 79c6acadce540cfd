// Reads the series of a report, the status of each of their days, and what is not complete.

import { sql } from "kysely";
import type { Coverage, CoverageGap, SeriesCoverage } from "../../report/report-data.ts";
import { type Day, dayCount, daysOf, type Window } from "../../usage/days.ts";
import type { SliceStatus } from "../../usage/slice.ts";
import type { Tx } from "../connection/transaction.ts";
import { undatedSeries } from "../health.ts";
import { DAY_LETTERS, type ReportSeries, statusOfLetter } from "./sources.ts";

const SERIES_MAX = 60;
const GAPS_MAX = 50;

type SeriesDays = {
  readonly series: ReportSeries;
  readonly statuses: readonly (SliceStatus | undefined)[];
  readonly counts: Coverage["counts"];
};

export async function readCoverage(tx: Tx, series: readonly ReportSeries[], period: Window): Promise<Coverage> {
  // A series that is not configured any more is shown only if it has days of the period.
  const known = series.map(seriesDays).filter(({ series: { active }, statuses }) => active || statuses.some(Boolean));
  // Suspect days count less: their numbers were right once. The sort keeps equal series in the order of their names.
  const worstFirst = known.toSorted((a, b) => unreadCount(b) - unreadCount(a) || b.counts.suspect - a.counts.suspect);
  const shown = worstFirst.slice(0, SERIES_MAX);
  const days = daysOf(period);
  return {
    days,
    series: await withFreshness(tx, shown),
    seriesLeftOut: known.length - shown.length,
    counts: countsOf(known.flatMap(({ statuses }) => statuses)),
    incompleteDays: days.filter((_, i) => known.some(({ statuses }) => isNotComplete(statuses[i]))),
    dueThrough: dueThrough(known, days),
    ...(await readGaps(tx, period)),
    undated: (await undatedSeries(tx)).map(({ project, grouping, filter }) => ({ project, grouping, filter })),
  };
}

function seriesDays(series: ReportSeries): SeriesDays {
  const statuses = [...series.days].map(statusOfLetter);
  return { series, statuses, counts: countsOf(statuses) };
}

function isNotComplete(status: SliceStatus | undefined): boolean {
  return status !== undefined && status !== "complete";
}

/** The newest day through which every active series is due: an inactive one has no due days. */
function dueThrough(known: readonly SeriesDays[], days: readonly Day[]): Day | undefined {
  return known
    .filter(({ series }) => series.active)
    .map(({ statuses }) => days[statuses.findLastIndex((status) => status !== undefined)])
    .filter((day) => day !== undefined)
    .sort()[0];
}

function unreadCount({ counts }: SeriesDays): number {
  return counts.missing + counts.failed;
}

function countsOf(statuses: readonly (SliceStatus | undefined)[]): Coverage["counts"] {
  const counts = { complete: 0, suspect: 0, failed: 0, missing: 0 };
  for (const status of statuses) if (status !== undefined) counts[status]++;
  return counts;
}

type Freshness = Pick<SeriesCoverage, "freshThrough" | "dueThrough" | "fetchedAt">;

/** `fetchedAt` comes from the slices if there are any: bi.freshness has only series with due days, but others may be read too. */
async function withFreshness(tx: Tx, known: readonly SeriesDays[]): Promise<readonly SeriesCoverage[]> {
  const { rows } = await sql<Freshness & { readonly seriesId: number }>`
    select s.series_id as "seriesId", f.due_through as "dueThrough",
      case when f.fresh_through >= f.due_from then f.fresh_through end as "freshThrough",
      coalesce((select max(sl.fetched_at) from usage_export.slice sl where sl.series_id = s.series_id), f.fetched_at)
        as "fetchedAt"
    from usage_export.series s
    left join lateral (
      select * from bi.freshness f
      where f.project_id = s.project_id and f."grouping" = s."grouping" and f.filter = s.filter
    ) f on true
    where s.series_id = any(${known.map(({ series }) => series.seriesId)}::integer[])
  `.execute(tx);
  const bySeries = new Map(rows.map(({ seriesId, ...freshness }) => [seriesId, freshness]));
  return known.map(({ series: { seriesId, project, grouping, filter }, statuses }) => ({
    project,
    grouping,
    filter,
    statuses,
    freshThrough: null,
    dueThrough: null,
    fetchedAt: null,
    ...bySeries.get(seriesId),
  }));
}

/** Does not read bi.coverage_gaps: that view has no suspect days, and its stretches do not end with the period. */
async function readGaps(tx: Tx, { start, end }: Window): Promise<Pick<Coverage, "gaps" | "gapsLeftOut">> {
  const { rows } = await sql<CoverageGap & { readonly gapCount: number }>`
    select project, "grouping", filter, status, min(usage_date) as start, max(usage_date) as "end",
      (array_agg(error order by usage_date desc))[1] as error, (count(*) over ())::integer as "gapCount"
    from (
      select c.*, usage_date - (row_number() over (
        partition by project_id, "grouping", filter, status, error is null order by usage_date))::integer as stretch
      from bi.coverage c
      where status <> 'complete' and usage_date between ${start}::date and ${end}::date
    ) stretches
    group by project_id, project, "grouping", filter, status, error is null, stretch
    order by "end" desc, project collate "C", "grouping", filter collate "C", status
    limit ${GAPS_MAX}
  `.execute(tx);
  const gaps = rows.map(({ gapCount: _, ...gap }) => gap);
  return { gaps, gapsLeftOut: (rows[0]?.gapCount ?? 0) - gaps.length };
}

/** The configured series, and of the others those with a day in one of the periods. Ordered by name. */
export async function reportSeries(tx: Tx, before: Window, period: Window): Promise<readonly ReportSeries[]> {
  const { rows } = await sql<Omit<ReportSeries, "daysBefore">>`
    with slice as (
      select project_id, "grouping", filter, usage_date,
        case when status = 'complete' and finality = 'open' then ${DAY_LETTERS.open} else left(status, 1) end as letter,
        usage_date - coalesce(lag(usage_date) over (
          partition by project_id, "grouping", filter order by usage_date), ${before.start}::date - 1) as days_since
      from bi.coverage where usage_date between ${before.start}::date and ${period.end}::date
    ), covered as materialized (
      select project_id, "grouping", filter,
        string_agg(repeat(${DAY_LETTERS.unread}, days_since - 1) || letter, '' order by usage_date) as days
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
    const days = row.days.padEnd(countBefore + dayCount(period), DAY_LETTERS.unread);
    return { ...row, daysBefore: days.slice(0, countBefore), days: days.slice(countBefore) };
  });
}
