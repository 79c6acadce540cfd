// Reads the series of a report, the status of each of their days, and what is not complete.

import { sql } from "kysely";
import type { Coverage, CoverageGap, CoverageSummary, SeriesCoverage } from "../../report/report-data.ts";
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

export function summarizeCoverage(series: readonly ReportSeries[], period: Window): CoverageSummary {
  return summaryOf(seriesOfPeriod(series), period);
}

export async function readCoverage(tx: Tx, series: readonly ReportSeries[], period: Window): Promise<Coverage> {
  const known = seriesOfPeriod(series);
  const summary = summaryOf(known, period);
  // Suspect days count less: their numbers were right once. The sort keeps equal series in the order of their names.
  const worstFirst = known.toSorted((a, b) => unreadCount(b) - unreadCount(a) || b.counts.suspect - a.counts.suspect);
  const shown = worstFirst.slice(0, SERIES_MAX);
  return {
    ...summary,
    series: await withFreshness(tx, shown),
    ...(summary.incompleteDays.length > 0 ? await readGaps(tx, series, period) : NO_GAPS),
    undated: (await undatedSeries(tx))
      .filter(({ project }) => series.some((one) => one.project === project))
      .map(({ project, grouping, filter }) => ({ project, grouping, filter })),
  };
}

/** A series that is not configured any more counts only if it has days of the period. */
function seriesOfPeriod(series: readonly ReportSeries[]): readonly SeriesDays[] {
  return series.map(seriesDays).filter(({ series: { active }, statuses }) => active || statuses.some(Boolean));
}

function summaryOf(known: readonly SeriesDays[], period: Window): CoverageSummary {
  const days = daysOf(period);
  return {
    days,
    seriesCount: known.length,
    counts: countsOf(known.flatMap(({ statuses }) => statuses)),
    incompleteDays: days.filter((_, i) => known.some(({ statuses }) => isNotComplete(statuses[i]))),
    dueThrough: dueThrough(known, days),
  };
}

function seriesDays(series: ReportSeries): SeriesDays {
  const statuses = [...series.days].map(statusOfLetter);
  return { series, statuses, counts: countsOf(statuses) };
}

function isNotComplete(status: SliceStatus | undefined): boolean {
  return status !== undefined && status !== "complete";
}

/** The newest day up to which every configured series is due. A series that is not configured any more has no due days. */
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

/** A series without due days has no `freshThrough`, but may have been read. */
async function withFreshness(tx: Tx, known: readonly SeriesDays[]): Promise<readonly SeriesCoverage[]> {
  const { rows } = await sql<Freshness & { readonly seriesId: number }>`
    select s.series_id as "seriesId", f.due_until as "dueThrough",
      case when f.fresh_through >= f.due_from then f.fresh_through end as "freshThrough",
      coalesce(
        f.fetched_at,
        (select max(fetched_at) from usage_export.slice sl where sl.series_id = s.series_id),
        (select max(taken_at) from usage_export.undated_snapshot u where u.series_id = s.series_id)
      ) as "fetchedAt"
    from usage_export.series s
    left join usage_export.fresh_series f using (series_id)
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

const NO_GAPS = { gaps: [], gapsLeftOut: 0 };

/** Does not read bi.coverage_gaps: that view has no suspect days, and its stretches do not end with the period. */
async function readGaps(
  tx: Tx,
  series: readonly ReportSeries[],
  { start, end }: Window,
): Promise<Pick<Coverage, "gaps" | "gapsLeftOut">> {
  const projectIds = [...new Set(series.map(({ projectId }) => projectId))];
  const { rows } = await sql<CoverageGap & { readonly gapCount: number }>`
    select project, "grouping", filter, status, min(usage_date) as start, max(usage_date) as "end",
      (array_agg(error order by usage_date desc))[1] as error, (count(*) over ())::integer as "gapCount"
    from (
      select c.*, usage_date - (row_number() over (
        partition by project_id, "grouping", filter, status, error is null order by usage_date))::integer as stretch
      from bi.coverage c
      where source = 'usage' and status <> 'complete' and usage_date between ${start}::date and ${end}::date
        and project_id = any(${projectIds}::text[])
    ) stretches
    group by project_id, project, "grouping", filter, status, error is null, stretch
    order by "end" desc, project collate "C", "grouping", filter collate "C", status
    limit ${GAPS_MAX}
  `.execute(tx);
  const gaps = rows.map(({ gapCount: _, ...gap }) => gap);
  return { gaps, gapsLeftOut: (rows[0]?.gapCount ?? 0) - gaps.length };
}

/**
 * The configured series of usage, and of the others those with a day in one of the periods; of one project or of all. Ordered by name. The letters say what bi.coverage
 * shows, which is made for all days of all series and would take several times as long.
 */
export async function reportSeries(
  tx: Tx,
  before: Window,
  period: Window,
  project: string | undefined,
): Promise<readonly ReportSeries[]> {
  const { rows } = await sql<Omit<ReportSeries, "daysBefore">>`
    select s.series_id as "seriesId", s.project_id as "projectId", s.project, s."grouping", s.filter,
      s.filter_key = '{}' as unfiltered, s.retired_at is null as active,
      string_agg(
        case
          when sl.status = 'complete' and sl.closed_at is null and day between d.due_from and d.closing_until
            then ${DAY_LETTERS.missing}
          when sl.status = 'complete' and usage_export.finality(day, s.window_days, sl.closed_at, now()) = 'open'
            then ${DAY_LETTERS.open}
          when sl.status is not null then left(sl.status, 1)
          when day between d.due_from and d.due_until then ${DAY_LETTERS.missing}
          else ${DAY_LETTERS.unread}
        end,
        '' order by position
      ) as days
    from usage_export.series s
    cross join unnest(${[...daysOf(before), ...daysOf(period)]}::text[]::date[]) with ordinality as days (day, position)
    left join usage_export.due_series d using (series_id)
    left join usage_export.slice sl
      on sl.series_id = s.series_id and sl.usage_date = day and (s.retired_at is null or sl.status = 'complete')
      and sl.usage_date between ${before.start}::date and ${period.end}::date
    where s.source = 'usage' and s.superseded_at is null
      and s.project = coalesce(${project ?? null}::text, s.project)
    group by s.series_id
    having s.retired_at is null or count(sl.status) > 0
    order by s.project collate "C", s."grouping", s.filter collate "C", s.project_id
  `.execute(tx);
  const countBefore = dayCount(before);
  return rows.map((row) => ({ ...row, daysBefore: row.days.slice(0, countBefore), days: row.days.slice(countBefore) }));
}
