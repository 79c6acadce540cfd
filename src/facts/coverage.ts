// Which days were read: the number of slices of each project by status, the state of each day, and what is not complete.

import type { Day, Window } from "../usage/days.ts";
import type { Source } from "../usage/dimensions.ts";
import type { SeriesName } from "../usage/series.ts";
import type { SliceStatus } from "../usage/slice-decision.ts";
import { literal, projectConditions, type Question, within } from "./question.ts";
import { findProjects, type Query } from "./scope.ts";

export type SliceCounts = Readonly<Record<SliceStatus, number>>;

/** All series of a project and source. Slices that are not complete count only if their series is configured. */
export type ProjectHealth = SliceCounts & {
  readonly project: string;
  readonly projectId: string;
  readonly source: Source;
  /** How many series are configured; 0 for a project that no longer is. */
  readonly series: number;
  /** The newest day up to which every series was read; null while no day is due. */
  readonly freshThrough: Day | null;
};

export function completeness(query: Query): Promise<readonly ProjectHealth[]> {
  return query(`
    select max(project) as project, project_id as "projectId", source, (count(*) filter (where is_active))::integer as series,
      sum(complete)::integer as complete, coalesce(sum(missing) filter (where is_active), 0)::integer as missing,
      coalesce(sum(failed) filter (where is_active), 0)::integer as failed,
      coalesce(sum(suspect) filter (where is_active), 0)::integer as suspect, min(fresh_through) filter (where is_active) as "freshThrough"
    from usage_export.series_health group by source, project_id order by source desc, max(project)`);
}

export function countSlices(projects: readonly SliceCounts[]): SliceCounts {
  const sum = (status: SliceStatus) => projects.reduce((total, project) => total + project[status], 0);
  return { complete: sum("complete"), suspect: sum("suspect"), failed: sum("failed"), missing: sum("missing") };
}

/** The projects with the most missing or failed slices first. Suspect slices count less: most show numbers that were believed. */
export function worstFirst(projects: readonly ProjectHealth[]): readonly ProjectHealth[] {
  const unread = ({ missing, failed }: ProjectHealth) => missing + failed;
  const fresh = (one: ProjectHealth) => Date.parse(one.freshThrough ?? "9999-12-31");
  return projects.toSorted((a, b) => unread(b) - unread(a) || b.suspect - a.suspect || fresh(a) - fresh(b));
}

/**
 * From best to worst:
 * - `stale`: the numbers of an earlier reading are shown, as the newest one failed, or none was made since the day was over
 * - `suspect`: the newest answer is doubtful, so the numbers before it, if any, are shown
 * - `missing`: there are no numbers
 */
export const DAY_QUALITIES = ["complete", "stale", "suspect", "missing"] as const;
export type DayQuality = (typeof DAY_QUALITIES)[number];

export type Coverage = Awaited<ReturnType<typeof coverage>>;

export type ProjectCoverage = {
  readonly projectId: string;
  readonly project: string;
  /** The days that were due or read, each with the worst quality of its series. */
  readonly days: Readonly<Record<Day, DayQuality>>;
  /** The newest day up to which every series was read, perhaps outside the period; null if a series lacks its first due day. */
  readonly freshThrough: Day | null;
  readonly fetchedAt: Date | null;
  /** What is not complete in the period, the newest first; at most 20. */
  readonly gaps: readonly CoverageGap[];
};

type CoverageGap = Window &
  Omit<SeriesName, "project"> & {
    readonly quality: Exclude<DayQuality, "complete">;
    readonly error: string | null;
  };

/** Reads the coverage of usage and billing together. Throws InvalidQuestion if there is no such project. */
export async function coverage(query: Query, asked: Pick<Question, "period" | "projects">) {
  const inProjects = projectConditions({ projectIds: asked.projects && (await findProjects(query, asked.projects)) });
  const condition = [within(asked.period), "status <> 'undated'", ...inProjects].join(" and ");
  const worst = await leastCovered(query, inProjects, condition, await lackingConditions(query, inProjects));
  const projects = worst.length > 0 ? await projectCoverage(query, worst, condition) : [];
  return { projects, projectCount: worst[0]?.count ?? 0, undated: await undatedSeries(query, inProjects) };
}

/** Series whose answers carry no date: no figure contains their numbers. */
export function undatedSeries(query: Query, inProjects: readonly string[] = []): Promise<readonly SeriesName[]> {
  // Only these rows of bi.coverage have no day. With a condition on the status alone, Postgres would read every slice.
  return query<SeriesName>(`
select project, "grouping", filter from bi.coverage
where ${["source = 'usage' and status = 'undated' and usage_date is null", ...inProjects].join(" and ")} order by 1, 2, 3`);
}

const PROJECTS_MAX = 60;
const GAPS_MAX = 20;
const QUALITY_SQL = `case when status in ('complete', 'suspect') then status when fetched_at is not null then 'stale' else 'missing' end`;

type ProjectRow = { readonly projectId: string; readonly project: string; readonly count: number };

/** If more projects than this may lack days, reading the days of all projects is as fast as reading only the days of these. */
const LACKING_MAX = 1_000;

/** Conditions that select the projects that may lack a day. In most nights there is none: the condition is false, and no day is read. */
async function lackingConditions(query: Query, inProjects: readonly string[]): Promise<readonly string[]> {
  const found = await query<Pick<ProjectRow, "projectId">>(`
select distinct project_id as "projectId" from usage_export.series_days
where ${["is_whole is not true", ...inProjects].join(" and ")} limit ${LACKING_MAX + 1}`);
  return found.length > LACKING_MAX ? [] : projectConditions({ projectIds: found.map(({ projectId }) => projectId) });
}

/** The configured projects, those with the most missing slices first; `count` is how many there are. */
function leastCovered(query: Query, inProjects: readonly string[], condition: string, lacking: readonly string[]) {
  return query<ProjectRow>(`
select project_id as "projectId", project, (count(*) over ())::integer as count
from (select project_id, max(project) as project from bi.series where ${["active", ...inProjects].join(" and ")} group by project_id) known
left join (
  select project_id, count(*) filter (where ${QUALITY_SQL} = 'missing') as missing, count(*) as lacking
  from bi.coverage where ${[condition, "status <> 'complete'", ...lacking].join(" and ")} group by project_id
) bad using (project_id)
-- "region 2" comes before "region 10".
order by missing desc nulls last, lacking desc nulls last, regexp_replace(project, '\\d+', '', 'g') collate "C", length(project),
  project collate "C", project_id
limit ${PROJECTS_MAX}`);
}

/** bi.coverage_gaps can't be used: it has no suspect days, and its gaps reach beyond the period. */
function projectCoverage(query: Query, shown: readonly ProjectRow[], condition: string) {
  const ids = shown.map(({ projectId }) => literal(projectId)).join(", ");
  const names = shown.map(({ project }) => literal(project)).join(", ");
  // The source is named because the index of the series begins with it.
  const ofShown = `source in ('usage', 'billing') and project_id in (${ids})`;
  const qualities = `array[${DAY_QUALITIES.map(literal).join(", ")}]`;
  return query<ProjectCoverage>(`
with covered as materialized (
  select *, ${QUALITY_SQL} as quality from bi.coverage where ${ofShown} and ${condition}
), gap as (
  -- Days with an error and days without one make separate gaps. A gap shows the error of its newest day.
  select project_id, json_build_object('source', source, 'grouping', "grouping", 'filter', filter, 'quality', quality,
      'start', min(usage_date), 'end', max(usage_date), 'error', (array_agg(error order by usage_date desc))[1]) as gap,
    row_number() over (partition by project_id order by max(usage_date) desc, source desc, "grouping", filter collate "C") as nth
  from (
    select *, usage_date - (row_number() over (
      partition by project_id, source, "grouping", filter, quality, error is null order by usage_date))::integer as stretch
    from covered where quality <> 'complete'
  ) bad
  group by project_id, source, "grouping", filter, quality, error is null, stretch
), day as (
  select project_id, usage_date, (${qualities})[max(array_position(${qualities}, quality))] as worst
  from covered group by project_id, usage_date
)
select project_id as "projectId", project, fresh."freshThrough", fresh."fetchedAt",
  coalesce((select json_object_agg(usage_date, worst) from day where project_id = shown.project_id), '{}') as days,
  coalesce((select json_agg(gap order by nth) from gap where project_id = shown.project_id and nth <= ${GAPS_MAX}), '[]') as gaps
from unnest(array[${ids}], array[${names}]) with ordinality as shown (project_id, project, position)
left join (
  select project_id, case when bool_and(fresh_through >= due_from) then min(fresh_through) end as "freshThrough", max(fetched_at) as "fetchedAt"
  from bi.freshness where ${ofShown} group by project_id
) fresh using (project_id)
order by position`);
}

/** Consecutive days that are missing, or failed for the same reason: an outage makes the same gap in every series. */
type Gap = {
  readonly status: "missing" | "failed";
  readonly from: Day;
  readonly to: Day;
  /** Failed: why the newest day failed. Missing: that the days were read before they were over; null if they were never read. */
  readonly error: string | null;
  readonly series: readonly SeriesName[];
};

export type Gaps = { readonly gaps: readonly Gap[]; readonly gapsLeftOut: number };

/** `projects` are names; undefined for all. */
export async function newestGaps(query: Query, projects: readonly string[] | undefined): Promise<Gaps> {
  const condition = projects === undefined ? "true" : `project in (${projects.map(literal).join(", ") || "null"})`;
  const rows = await query<Gap & { readonly all: number }>(`
select status, from_date as "from", to_date as "to", reason as error, (count(*) over ())::integer as "all",
  json_agg(json_build_object('project', project, 'source', source, 'grouping', "grouping", 'filter', filter)
    order by source desc, project, "grouping", filter) as series
from (
  -- The errors of one cause differ in the number of attempts and in the id of the request.
  select *, regexp_replace(error, ' \\((\\d+ attempts|request id [^)]*)\\)', '', 'g') as reason from bi.coverage_gaps where ${condition}
) gap
group by status, from_date, to_date, reason
order by to_date desc, min(source) desc, min(project) collate "C", status
limit ${GAPS_MAX}`);
  return { gaps: rows.map(({ all: _, ...gap }) => gap), gapsLeftOut: (rows[0]?.all ?? 0) - rows.length };
}

/** Windows that are probably too short: at least 7 of the last 70 days still changed at the end of their window. */
export function shortWindows(query: Query) {
  return query<{ readonly windowDays: number; readonly days: number }>(`
select s.window_days as "windowDays", count(distinct r.usage_date)::integer as days
from usage_export.series s
join usage_export.superseded_row r using (series_id)
where s.source = 'usage' and s.filter_key = '{}' and s.retired_at is null and s.superseded_at is null
  and r.usage_date > (now() at time zone 'UTC')::date - 70
  and (r.superseded_at at time zone 'UTC')::date - r.usage_date >= s.window_days
group by s.window_days having count(distinct r.usage_date) >= 7 order by s.window_days`);
}
