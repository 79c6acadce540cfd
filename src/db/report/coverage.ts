// Reads the series of a report, the status of each of their days, and what is not complete.

import { sql } from "kysely";
import type { Coverage, CoverageGap, CoverageSummary, SeriesCoverage } from "../../report/report-data.ts";
import { type Day, dayCount, daysOf, type Window } from "../../usage/days.ts";
import type { SliceStatus } from "../../usage/slice.ts";
import { integers } from "../connection/integers.ts";
import type { Tx } from "../connection/transaction.ts";
import { undatedSeries } from "../health.ts";
import { type AlikeSeries, DAY_LETTERS, type SeriesIndex, statusOfLetter } from "./sources.ts";

const SERIES_MAX = 60;
const GAPS_MAX = 50;

/** Series whose days have the same statuses. */
type SeriesDays = {
  readonly series: AlikeSeries;
  readonly statuses: readonly (SliceStatus | undefined)[];
  /** Of each of the series. */
  readonly counts: Coverage["counts"];
};

export function summarizeCoverage(index: SeriesIndex, period: Window): CoverageSummary {
  return summaryOf(seriesOfPeriod(index), period);
}

/** `projectIds`: those that the index is of; undefined for all. */
export async function readCoverage(
  tx: Tx,
  index: SeriesIndex,
  period: Window,
  projectIds: readonly string[] | undefined,
): Promise<Coverage> {
  const known = seriesOfPeriod(index);
  const summary = summaryOf(known, period);
  const projects = new Set(index.projects.values());
  return {
    ...summary,
    series: await readWorst(tx, known),
    ...(summary.incompleteDays.length > 0 ? await readGaps(tx, projectIds, period) : NO_GAPS),
    undated: (await undatedSeries(tx))
      .filter((one) => projects.has(one.project))
      .map(({ project, grouping, filter }) => ({ project, grouping, filter })),
  };
}

/** A series that is not configured any more counts only if it has days of the period. */
function seriesOfPeriod({ alike }: SeriesIndex): readonly SeriesDays[] {
  return alike
    .map((series) => {
      const statuses = [...series.days].map(statusOfLetter);
      return { series, statuses, counts: countsOf(statuses) };
    })
    .filter(({ series: { active }, statuses }) => active || statuses.some(Boolean));
}

function summaryOf(known: readonly SeriesDays[], period: Window): CoverageSummary {
  const days = daysOf(period);
  const sum = (count: (series: SeriesDays) => number) =>
    known.reduce((total, one) => total + count(one) * one.series.seriesIds.length, 0);
  return {
    days,
    seriesCount: sum(() => 1),
    counts: {
      complete: sum(({ counts }) => counts.complete),
      suspect: sum(({ counts }) => counts.suspect),
      failed: sum(({ counts }) => counts.failed),
      missing: sum(({ counts }) => counts.missing),
    },
    incompleteDays: days.filter((_, i) => known.some(({ statuses }) => isNotComplete(statuses[i]))),
    dueThrough: dueThrough(known, days),
  };
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

/** The series with the most days that were not read, with those that are as bad as the last of them. Suspect days count less: their numbers were right once. */
function worstOf(known: readonly SeriesDays[]): readonly RankedDays[] {
  const sorted = known.toSorted((a, b) => unreadCount(b) - unreadCount(a) || b.counts.suspect - a.counts.suspect);
  const worst: RankedDays[] = [];
  let count = 0;
  for (const one of sorted) {
    const last = worst.at(-1);
    const isAsBad = last && unreadCount(last) === unreadCount(one) && last.counts.suspect === one.counts.suspect;
    if (count >= SERIES_MAX && !isAsBad) break;
    worst.push({ ...one, rank: isAsBad ? last.rank : worst.length });
    count += one.series.seriesIds.length;
  }
  return worst;
}

type RankedDays = SeriesDays & { readonly rank: number };

type Freshness = Pick<SeriesCoverage, "freshThrough" | "dueThrough" | "fetchedAt">;

type WorstRow = Freshness &
  Pick<SeriesCoverage, "project" | "projectId" | "grouping" | "filter"> & { readonly seriesId: number };

/** The worst first; equal ones by name. A series without due days has no `freshThrough`, but may have been read. */
async function readWorst(tx: Tx, known: readonly SeriesDays[]): Promise<readonly SeriesCoverage[]> {
  const worst = worstOf(known);
  const statusesOf = new Map(worst.flatMap((one) => one.series.seriesIds.map((id) => [id, one.statuses] as const)));
  const ranks = worst.flatMap(({ series, rank }) => series.seriesIds.map(() => rank));
  const order = sql`rank, project collate "C", "grouping", filter collate "C", project_id`;
  const { rows } = await sql<WorstRow>`
    with shown as materialized (
      select * from unnest(${integers([...statusesOf.keys()])}::integer[], ${integers(ranks)}::integer[]) as worst (series_id, rank)
      join usage_export.series s using (series_id)
      order by ${order} limit ${SERIES_MAX}
    )
    select series_id as "seriesId", project, project_id as "projectId", "grouping", filter, due_until as "dueThrough",
      case when fresh_through >= f.due_from then fresh_through end as "freshThrough",
      coalesce(
        f.fetched_at,
        (select max(fetched_at) from usage_export.slice sl where sl.series_id = shown.series_id),
        (select max(taken_at) from usage_export.undated_snapshot u where u.series_id = shown.series_id)
      ) as "fetchedAt"
    from shown
    -- The offset leaves no row out. With it the view is read for each of these series, and without it for all.
    left join lateral (
      select due_from, due_until, fresh_through, fetched_at from usage_export.fresh_series one
      where one.series_id = shown.series_id offset 0
    ) f on true
    order by ${order}
  `.execute(tx);
  return rows.map(({ seriesId, ...series }) => ({ ...series, statuses: statusesOf.get(seriesId) ?? [] }));
}

const NO_GAPS = { gaps: [], gapsLeftOut: 0 };

/** Of these projects, or of all. Does not read bi.coverage_gaps: that view has no suspect days, and its stretches do not end with the period. */
async function readGaps(
  tx: Tx,
  projectIds: readonly string[] | undefined,
  { start, end }: Window,
): Promise<Pick<Coverage, "gaps" | "gapsLeftOut">> {
  const { rows } = await sql<CoverageGap & { readonly gapCount: number }>`
    select project, project_id as "projectId", "grouping", filter, status, min(usage_date) as start, max(usage_date) as "end",
      (array_agg(error order by usage_date desc))[1] as error, (count(*) over ())::integer as "gapCount"
    from (
      select c.*, usage_date - (row_number() over (
        partition by project_id, "grouping", filter, status, error is null order by usage_date))::integer as stretch
      from bi.coverage c
      where source = 'usage' and status <> 'complete' and usage_date between ${start}::date and ${end}::date
        and ${ofProjects(projectIds)}
    ) stretches
    group by project_id, project, "grouping", filter, status, error is null, stretch
    order by "end" desc, project collate "C", "grouping", filter collate "C", status
    limit ${GAPS_MAX}
  `.execute(tx);
  const gaps = rows.map(({ gapCount: _, ...gap }) => gap);
  return { gaps, gapsLeftOut: (rows[0]?.gapCount ?? 0) - gaps.length };
}

/** The conditions of views for these projects, or for all. */
export function ofProjects(projectIds: readonly string[] | undefined) {
  return projectIds === undefined ? sql`true` : sql`project_id = any(${projectIds}::text[])`;
}

type AlikeRow = Omit<AlikeSeries, "daysBefore" | "days"> & {
  /** The due days of each of the series, and the newest of them whose reading after its end is due. Counted from the first day. */
  readonly dueFrom: number | null;
  readonly dueUntil: number | null;
  readonly closingUntil: number | null;
  /** The days with a slice, each with a letter: "3c4c9f". */
  readonly slices: string | null;
};

/** Of a slice that was read before its day was over, and not since. */
const UNCLOSED = "u";

/**
 * The configured series of usage, and of the others those with a day in one of the periods; of one project or of all. The letters say what
 * bi.coverage shows, which is made for all days of all series and would take several times as long. Only stored slices are read: a row
 * for each day of each series takes seconds with thousands of projects.
 */
export async function reportSeries(
  tx: Tx,
  before: Window,
  period: Window,
  project: string | undefined,
): Promise<SeriesIndex> {
  const ofProject = project === undefined ? sql`true` : sql`${project} in (s.project, s.project_id)`;
  const isShown = sql`s.source = 'usage' and s.superseded_at is null and ${ofProject}`;
  const ofShown = sql`sl.series_id in (select s.series_id from usage_export.series s where ${isShown})`;
  const first = sql`${before.start}::date`;
  const { rows } = await sql<AlikeRow>`
    with read as materialized (
      select sl.series_id, string_agg(
          (sl.usage_date - ${first})::text || case
            when sl.status <> 'complete' then left(sl.status, 1)
            when sl.closed_at is null then ${sql.lit(UNCLOSED)}
            when sl.closed_at <= now() and sl.usage_date < (select (now() at time zone 'UTC')::date)
              then ${sql.lit(DAY_LETTERS.complete)}
            else ${sql.lit(DAY_LETTERS.open)}
          end,
          '' order by sl.usage_date
        ) as slices
      from usage_export.slice sl
      where sl.usage_date between ${first} and ${period.end}::date
        and (sl.usage_date <= ${before.end}::date or sl.usage_date >= ${period.start}::date)
        and ${project === undefined ? sql`true` : ofShown}
      group by sl.series_id
    )
    select s."grouping", s.filter_key = '{}' as unfiltered, s.retired_at is null as active, d.due_from - ${first} as "dueFrom",
      d.due_until - ${first} as "dueUntil", d.closing_until - ${first} as "closingUntil", read.slices,
      json_agg(s.series_id) as "seriesIds", json_agg(s.project_id) as "projectIds"
    from usage_export.series s
    left join usage_export.due_series d using (series_id)
    left join read using (series_id)
    where ${isShown} and (s.retired_at is null or read.slices is not null)
    group by 1, 2, 3, 4, 5, 6, 7
  `.execute(tx);
  const { rows: projects } = await sql<{ id: string; name: string }>`
    select s.project_id as id, max(s.project) as name from usage_export.series s where ${isShown}
    group by s.project_id order by max(s.project) collate "C", s.project_id
  `.execute(tx);
  const alike = rows.map((row) => withLetters(row, before, period));
  // What is configured no more is not read again, so only its complete days count.
  const shown = alike.filter(({ active, daysBefore, days }) => active || hasDay(daysBefore) || hasDay(days));
  return { projects: new Map(projects.map(({ id, name }) => [id, name])), alike: shown };
}

function hasDay(letters: string): boolean {
  return [...letters].some((letter) => letter !== DAY_LETTERS.unread);
}

function withLetters({ slices, dueFrom, dueUntil, closingUntil, ...series }: AlikeRow, before: Window, period: Window) {
  const letters = new Map([...(slices ?? "").matchAll(/(\d+)(\D)/g)].map(([, day, letter]) => [Number(day), letter]));
  const isDue = (day: number, until: number | null) =>
    dueFrom !== null && until !== null && dueFrom <= day && day <= until;
  const letterOf = (day: number): string => {
    const letter = letters.get(day);
    if (letter === undefined) return isDue(day, dueUntil) ? DAY_LETTERS.missing : DAY_LETTERS.unread;
    if (letter === UNCLOSED) return isDue(day, closingUntil) ? DAY_LETTERS.missing : DAY_LETTERS.open;
    return series.active || statusOfLetter(letter) === "complete" ? letter : DAY_LETTERS.unread;
  };
  const lettersOf = (from: number, window: Window) =>
    daysOf(window)
      .map((_, i) => letterOf(from + i))
      .join("");
  const periodFrom = dayCount({ start: before.start, end: period.start }) - 1;
  return { ...series, daysBefore: lettersOf(0, before), days: lettersOf(periodFrom, period) };
}
