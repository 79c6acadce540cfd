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
  return series.map(openSeriesDays()).filter(({ series: { active }, statuses }) => active || statuses.some(Boolean));
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

/** Nearly all series have the same days, so each text of letters is read once. */
function openSeriesDays(): (series: ReportSeries) => SeriesDays {
  const known = new Map<string, Omit<SeriesDays, "series">>();
  return (series) => {
    const read = known.get(series.days) ?? statusesOf(series.days);
    known.set(series.days, read);
    return { series, ...read };
  };
}

function statusesOf(days: string): Omit<SeriesDays, "series"> {
  const statuses = [...days].map(statusOfLetter);
  return { statuses, counts: countsOf(statuses) };
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

type SeriesLetters = Omit<ReportSeries, "daysBefore" | "days"> & Letters;

/** The slices of a series, and its due days. Days are counted from the first one. */
type Letters = {
  readonly dueFrom: number | null;
  readonly dueUntil: number | null;
  /** "3,4,9" */
  readonly readDays: string | null;
  /** One letter for each of these days. */
  readonly letters: string | null;
};

/**
 * The configured series of usage, and of the others those with a day in one of the periods; of one project or of all. Ordered by name. The letters say what bi.coverage
 * shows, which is made for all days of all series and would take several times as long. Only stored slices are read: a row for each day of
 * each series takes seconds with thousands of projects.
 */
export async function reportSeries(
  tx: Tx,
  before: Window,
  period: Window,
  project: string | undefined,
): Promise<readonly ReportSeries[]> {
  const isShown = sql`s.source = 'usage' and s.superseded_at is null and s.project = coalesce(${project ?? null}::text, s.project)`;
  const { rows } = await sql<SeriesLetters>`
    with days as materialized (
      select sl.series_id, string_agg((sl.usage_date - ${before.start}::date)::text, ',' order by sl.usage_date) as read_days,
        string_agg(
          case
            when sl.status = 'complete' and sl.closed_at is null and sl.usage_date between d.due_from and d.closing_until
              then ${DAY_LETTERS.missing}
            when sl.status = 'complete' and usage_export.finality(sl.usage_date, s.window_days, sl.closed_at, now()) = 'open'
              then ${DAY_LETTERS.open}
            else left(sl.status, 1)
          end,
          '' order by sl.usage_date
        ) as letters
      from usage_export.slice sl
      join usage_export.series s using (series_id)
      left join usage_export.due_series d using (series_id)
      where ${isShown} and (s.retired_at is null or sl.status = 'complete')
        and sl.usage_date between ${before.start}::date and ${period.end}::date
        and (sl.usage_date <= ${before.end}::date or sl.usage_date >= ${period.start}::date)
      group by sl.series_id
    )
    select s.series_id as "seriesId", s.project_id as "projectId", s.project, s."grouping", s.filter,
      s.filter_key = '{}' as unfiltered, s.retired_at is null as active, d.due_from - ${before.start}::date as "dueFrom",
      d.due_until - ${before.start}::date as "dueUntil", days.read_days as "readDays", days.letters
    from usage_export.series s
    left join usage_export.due_series d using (series_id)
    left join days using (series_id)
    where ${isShown} and (s.retired_at is null or days.series_id is not null)
    order by s.project collate "C", s."grouping", s.filter collate "C", s.project_id
  `.execute(tx);
  const periodFrom = dayCount({ start: before.start, end: period.start }) - 1;
  const known = new Map<string, Pick<ReportSeries, "daysBefore" | "days">>();
  return rows.map(({ dueFrom, dueUntil, readDays, letters, ...series }) => {
    // Nearly all series have the same days.
    const key = `${dueFrom} ${dueUntil} ${readDays} ${letters}`;
    let days = known.get(key);
    if (!days) {
      const letterOf = letterOfDay({ dueFrom, dueUntil, readDays, letters });
      const lettersOf = (from: number, window: Window) =>
        daysOf(window)
          .map((_, i) => letterOf(from + i))
          .join("");
      days = { daysBefore: lettersOf(0, before), days: lettersOf(periodFrom, period) };
      known.set(key, days);
    }
    return { ...series, ...days };
  });
}

function letterOfDay({ dueFrom, dueUntil, readDays, letters }: Letters): (day: number) => string {
  const read = new Map((readDays ?? "").split(",").map((day, i) => [Number(day), letters?.charAt(i)]));
  const isDue = (day: number) => dueFrom !== null && dueUntil !== null && dueFrom <= day && day <= dueUntil;
  return (day) => (letters && read.get(day)) || (isDue(day) ? DAY_LETTERS.missing : DAY_LETTERS.unread);
}
