// Which days of usage were read: how many slices have each status, the series that lack the most days, and what is not complete.

import type { Day, Window } from "../usage/days.ts";
import type { SeriesName } from "../usage/series.ts";
import type { SliceStatus } from "../usage/slice.ts";
import { findProjects, type Run } from "./scope.ts";
import { literal, projectConditions, within } from "./sql.ts";

export type Coverage = {
  readonly period: Window;
  readonly counts: Readonly<Record<SliceStatus, number>>;
  readonly finality: readonly FinalityCount[];
  /** How many series are configured. */
  readonly seriesCount: number;
  /** Those that lack the most days first, then by name; at most 60. */
  readonly series: readonly SeriesCoverage[];
  /** What is not complete in the period, as ranges of days, the newest first; at most 50. */
  readonly gaps: readonly CoverageGap[];
  readonly gapsLeftOut: number;
  /** Series whose answers carry no date: no figure contains their numbers. */
  readonly undated: readonly SeriesName[];
  /** Days on which the sum over a grouping differs from the total; "left out" of too many projects. */
  readonly differences: readonly Difference[] | "left out";
  readonly differencesLeftOut: number;
};

/** How many slices of the period have a finality, and on which days. */
type FinalityCount = Window & {
  readonly finality: string;
  readonly days: number;
  readonly slices: number;
};

type KnownSeries = SeriesName & { readonly projectId: string };

export type SeriesCoverage = KnownSeries & {
  /** Of the days that were due or read. */
  readonly statuses: Readonly<Record<Day, SliceStatus>>;
  /** The newest day, of all time, up to which nothing is missing; null if there is none. */
  readonly freshThrough: Day | null;
  readonly dueThrough: Day | null;
  readonly fetchedAt: Date | null;
};

export type CoverageGap = KnownSeries &
  Window & { readonly status: Exclude<SliceStatus, "complete">; readonly error: string | null };

type Difference = {
  readonly source: string;
  readonly project: string;
  readonly grouping: string;
  readonly day: Day;
  readonly metric: string;
  readonly total: string;
  readonly sumOfGroups: string;
  readonly difference: string;
};

export type CoverageScope = {
  readonly period: Window;
  /** Names or identifiers; undefined for all. */
  readonly projects: readonly string[] | undefined;
};

/** Throws InvalidQuestion if there is no such project. */
export async function coverage(run: Run, { period, projects }: CoverageScope): Promise<Coverage> {
  const ofProjects = projectConditions({ projectIds: projects && (await findProjects(run, projects)) });
  const ofUsage = ["source = 'usage'", ...ofProjects];
  const asked = [...ofUsage, within(period)].join(" and ");
  const days = await run<{ status: SliceStatus; finality: string; day: Day; slices: number }>(`
select status, finality, usage_date as day, count(*)::integer as slices from bi.coverage where ${asked} group by 1, 2, 3`);
  const isWhole = days.every(({ status }) => status === "complete");
  const counts = { complete: 0, suspect: 0, failed: 0, missing: 0 };
  for (const { status, slices } of days) counts[status] += slices;
  return {
    ...{ period, counts, finality: finalityOf(days) },
    ...(await readSeries(run, ofUsage, period, isWhole)),
    ...(isWhole ? { gaps: [], gapsLeftOut: 0 } : await readGaps(run, asked)),
    undated: await undatedSeries(run, projects),
    ...(await readDifferences(run, ofProjects, period)),
  };
}

export async function undatedSeries(run: Run, projects: CoverageScope["projects"]): Promise<readonly SeriesName[]> {
  const ofProjects = projectConditions({ projectIds: projects && (await findProjects(run, projects)) });
  return run<SeriesName>(`
select project, "grouping", filter from bi.coverage
where ${["source = 'usage' and status = 'undated'", ...ofProjects].join(" and ")} order by 1, 2, 3`);
}

function finalityOf(days: readonly { readonly finality: string; readonly day: Day; readonly slices: number }[]) {
  return [...Map.groupBy(days, ({ finality }) => finality)]
    .map(([finality, of]): FinalityCount => {
      const known = [...new Set(of.map(({ day }) => day))].sort();
      const slices = of.reduce((sum, one) => sum + one.slices, 0);
      return { finality, start: known[0] ?? "", end: known.at(-1) ?? "", days: known.length, slices };
    })
    .sort((a, b) => (a.start < b.start ? -1 : 1));
}

const SERIES_MAX = 60;

type SeriesRow = KnownSeries & { readonly count: number };
type DayRow = KnownSeries & { readonly day: Day; readonly status: SliceStatus };
type FreshRow = KnownSeries & Pick<SeriesCoverage, "freshThrough" | "dueThrough" | "fetchedAt">;

/** Suspect days count less than those that were not read: their numbers were right once. */
async function readSeries(
  run: Run,
  ofUsage: readonly string[],
  period: Window,
  isWhole: boolean,
): Promise<Pick<Coverage, "series" | "seriesCount">> {
  const lacking = `
left join (
  select project_id, "grouping", filter, count(*) filter (where status <> 'suspect') as unread, count(*) as lacking
  from bi.coverage where ${[...ofUsage, within(period), "status <> 'complete'"].join(" and ")}
  group by 1, 2, 3
) bad using (project_id, "grouping", filter)`;
  const rows = await run<SeriesRow>(`
select project_id as "projectId", project, "grouping", filter, (count(*) over ())::integer as count
from bi.series${isWhole ? "" : lacking}
where ${[...ofUsage, "active"].join(" and ")}
order by ${isWhole ? "" : "unread desc nulls last, lacking desc nulls last, "}project collate "C", "grouping", filter collate "C", project_id
limit ${SERIES_MAX}`);
  if (rows.length === 0) return { series: [], seriesCount: 0 };
  const keys = rows.map((one) => `(${[one.projectId, one.grouping, one.filter].map(literal).join(", ")})`).join(", ");
  const ofShown = `source = 'usage' and (project_id, "grouping", filter) in (${keys})`;
  const days = await run<DayRow>(`
select project_id as "projectId", "grouping", filter, usage_date as day, status from bi.coverage
where ${ofShown} and ${within(period)}`);
  const fresh = await run<FreshRow>(`
select project_id as "projectId", "grouping", filter, case when fresh_through >= due_from then fresh_through end as "freshThrough",
  due_through as "dueThrough", fetched_at as "fetchedAt"
from bi.freshness where ${ofShown}`);
  const keyOf = (one: Omit<KnownSeries, "project">) => JSON.stringify([one.projectId, one.grouping, one.filter]);
  const daysOf = Map.groupBy(days, keyOf);
  const freshOf = new Map(fresh.map((one) => [keyOf(one), one]));
  const none = { freshThrough: null, dueThrough: null, fetchedAt: null };
  const series = rows.map(({ count: _, ...one }) => ({
    ...{ ...none, ...freshOf.get(keyOf(one)), ...one },
    statuses: Object.fromEntries((daysOf.get(keyOf(one)) ?? []).map(({ day, status }) => [day, status])),
  }));
  return { series, seriesCount: rows[0]?.count ?? 0 };
}

const GAPS_MAX = 50;

/** bi.coverage_gaps has no suspect days, and its stretches do not end with the period. */
async function readGaps(run: Run, asked: string): Promise<Pick<Coverage, "gaps" | "gapsLeftOut">> {
  const rows = await run<CoverageGap & { readonly count: number }>(`
select project, project_id as "projectId", "grouping", filter, status, min(usage_date) as start, max(usage_date) as "end",
  (array_agg(error order by usage_date desc))[1] as error, (count(*) over ())::integer as count
from (
  select c.*, usage_date - (row_number() over (
    partition by project_id, "grouping", filter, status, error is null order by usage_date))::integer as stretch
  from bi.coverage c
  where ${asked} and status <> 'complete'
) stretches
group by project_id, project, "grouping", filter, status, error is null, stretch
order by "end" desc, project collate "C", "grouping", filter collate "C", status
limit ${GAPS_MAX}`);
  const gaps = rows.map(({ count: _, ...gap }) => gap);
  return { gaps, gapsLeftOut: (rows[0]?.count ?? 0) - gaps.length };
}

const DIFFERENCES_MAX = 50;
/** The view adds up one slice after the other, which takes seconds for thousands of projects. */
const DIFFERENCES_PROJECTS_MAX = 200;

async function readDifferences(
  run: Run,
  ofProjects: readonly string[],
  period: Window,
): Promise<Pick<Coverage, "differences" | "differencesLeftOut">> {
  const [counted] = await run<{ count: number }>(`
select count(distinct project_id)::integer as count from bi.series where ${["active", ...ofProjects].join(" and ")}`);
  if ((counted?.count ?? 0) > DIFFERENCES_PROJECTS_MAX) return { differences: "left out", differencesLeftOut: 0 };
  const rows = await run<Difference & { readonly count: number }>(`
select source, project, "grouping", usage_date as day, metric, trim_scale(total)::text as total,
  trim_scale(sum_of_groups)::text as "sumOfGroups", trim_scale(difference)::text as difference,
  (count(*) over ())::integer as count
from bi.reconciliation where ${[within(period), ...ofProjects].join(" and ")}
order by usage_date desc, project collate "C", source, "grouping", metric limit ${DIFFERENCES_MAX}`);
  const differences = rows.map(({ count: _, ...one }) => one);
  return { differences, differencesLeftOut: (rows[0]?.count ?? 0) - differences.length };
}
