// Reads what is complete and what is missing, series by series.

import { sql } from "kysely";
import type { Coverage, CoverageGap, SeriesCoverage, SliceStatus } from "../report/report-data.ts";
import { type Day, daysOf, type Window } from "../usage/day.ts";
import { statusOf } from "./report-day.ts";
import type { ReportSeries } from "./report-series.ts";
import { undatedSeries } from "./status.ts";
import type { Tx } from "./transaction.ts";

const SERIES_MAX = 60;
const GAPS_MAX = 50;

type Known = {
  readonly series: ReportSeries;
  readonly statuses: readonly (SliceStatus | undefined)[];
  readonly counts: Coverage["counts"];
};

export async function readCoverage(tx: Tx, series: readonly ReportSeries[], period: Window): Promise<Coverage> {
  // Of what is not configured any more only what was read.
  const known = series.map(statusesOf).filter(({ series: { active }, statuses }) => active || statuses.some(Boolean));
  // What is suspect had numbers that were right once. The series come by name, which stays the order of the equally bad.
  const worstFirst = known.toSorted((a, b) => absent(b) - absent(a) || b.counts.suspect - a.counts.suspect);
  const shown = worstFirst.slice(0, SERIES_MAX);
  const days = daysOf(period);
  return {
    days,
    series: await withFreshness(tx, shown),
    seriesLeftOut: known.length - shown.length,
    counts: countsOf(known.flatMap(({ statuses }) => statuses)),
    lackingDays: days.filter((_, i) => known.some(({ statuses }) => isLacking(statuses[i]))),
    dueThrough: dueThrough(known, days),
    ...(await readGaps(tx, period)),
    undated: (await undatedSeries(tx)).map(({ project, grouping, filter }) => ({ project, grouping, filter })),
  };
}

function statusesOf(series: ReportSeries): Known {
  const statuses = [...series.days].map(statusOf);
  return { series, statuses, counts: countsOf(statuses) };
}

function isLacking(status: SliceStatus | undefined): boolean {
  return status !== undefined && status !== "complete";
}

/** Of what is not read any more no day is due, however long ago its last one was. */
function dueThrough(known: readonly Known[], days: readonly Day[]): Day | undefined {
  return known
    .filter(({ series }) => series.active)
    .map(({ statuses }) => days[statuses.findLastIndex((status) => status !== undefined)])
    .filter((day) => day !== undefined)
    .sort()[0];
}

function absent({ counts }: Known): number {
  return counts.missing + counts.failed;
}

function countsOf(statuses: readonly (SliceStatus | undefined)[]): Coverage["counts"] {
  const count = (status: SliceStatus) => statuses.filter((one) => one === status).length;
  return { complete: count("complete"), suspect: count("suspect"), failed: count("failed"), missing: count("missing") };
}

type Freshness = Pick<SeriesCoverage, "freshThrough" | "dueThrough" | "fetchedAt">;

/** From the slices as well: bi.freshness has only the series that are due, and others have answers, too. */
async function withFreshness(tx: Tx, known: readonly Known[]): Promise<readonly SeriesCoverage[]> {
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

/** bi.coverage_gaps has no suspect days, and its stretches do not end with the period. */
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
