// Which stored series a question is about, and on which days their numbers can be relied on. Like the amounts, it is read from views of
// schema bi.

import { didYouMean } from "../../config/suggestions.ts";
import type { Day, Window } from "../../usage/days.ts";
import type { UsageGrouping } from "../../usage/series.ts";
import { InvalidView } from "../dashboard/view.ts";
import type { Question } from "./question.ts";
import { literal, type Scope, within } from "./sql.ts";

/** Runs a statement, which has no parameters, and returns its rows. All statements of a question see the same moment. */
export type Run = <Row>(statement: string) => Promise<readonly Row[]>;

const NAMES_MAX = 20;
const CANDIDATES_MAX = 1_000;

export type SeriesFacts = {
  /** Of the projects that the question is about: those with such a series, at most 20. */
  readonly projects: readonly { readonly id: string; readonly name: string }[];
  readonly projectCount: number;
  /** How many of these series are still exported. */
  readonly activeCount: number;
  /** Projects whose usage is exported, but not by such a series; at most 20. */
  readonly leftOut: readonly string[];
  readonly leftOutCount: number;
  /** Those that are exported under the filter. */
  readonly groupings: readonly UsageGrouping[];
  /** The filters with conditions that are exported by the grouping. */
  readonly filters: readonly string[];
};

type AskedProject = { readonly id: string; readonly name: string };

/** Throws InvalidView if there is no such project or filter. */
export async function readScope(run: Run, question: Question): Promise<Scope & SeriesFacts> {
  const project = question.project === undefined ? undefined : await findProject(run, question.project);
  if (question.filter !== undefined) await requireFilter(run, question.filter);
  const scope = { projectId: project?.id, filter: question.filter };
  const [facts] = await run<SeriesFacts>(factsSql(question, scope));
  if (!facts) throw new Error("expected one row with the facts about the series");
  return { ...scope, ...facts };
}

async function findProject(run: Run, name: string): Promise<AskedProject> {
  const found = await run<AskedProject>(`
    select distinct project_id as id, project as name from bi.series
    where source = 'usage' and (project_id = ${literal(name)} or project = ${literal(name)})
    order by 1 limit 2`);
  const ids = new Set(found.map(({ id }) => id));
  if (ids.size > 1)
    throw new InvalidView(
      `project: ${JSON.stringify(name)} is the name of several projects; use the identifier of one`,
    );
  if (found[0]) return found[0];
  const projects = await run<{ name: string }>(
    `select distinct project as name from bi.series where source = 'usage' limit ${CANDIDATES_MAX}`,
  );
  throw unknown("project", name, projects);
}

async function requireFilter(run: Run, name: string): Promise<void> {
  const filters = await run<{ name: string; unfiltered: boolean }>(`
    select distinct filter as name, unfiltered from bi.series where source = 'usage' limit ${CANDIDATES_MAX}`);
  const withName = filters.filter((filter) => filter.name === name);
  if (withName.some(({ unfiltered }) => !unfiltered)) return;
  if (withName.length > 0)
    throw new InvalidView(`filter: ${JSON.stringify(name)} has no conditions and is all usage; leave filter out`);
  throw unknown(
    "filter",
    name,
    filters.filter(({ unfiltered }) => !unfiltered),
  );
}

function unknown(parameter: string, name: string, known: readonly { readonly name: string }[]): InvalidView {
  const guess = didYouMean(
    name,
    known.map((one) => one.name),
  );
  return new InvalidView(`${parameter}: no usage of a ${parameter} ${JSON.stringify(name)} was ever asked for${guess}`);
}

function factsSql({ grouping }: Question, scope: Scope): string {
  const names = (from: string, condition: string) => `(
    select coalesce(json_agg(name), '[]') from (
      select distinct ${from} as name from series where ${condition} order by 1 limit ${CANDIDATES_MAX}
    ) names
  )`;
  return `
with series as materialized (
  select project_id, project, "grouping", filter, active, unfiltered,
    "grouping" = ${literal(grouping)} as has_grouping, ${filterCondition(scope)} as has_filter
  from bi.series where source = 'usage'${scope.projectId === undefined ? "" : ` and project_id = ${literal(scope.projectId)}`}
), project as (
  select project_id, (array_agg(project order by active desc, project))[1] as name, bool_or(active) as active,
    bool_or(has_grouping and has_filter) as has_series,
    count(*) filter (where has_grouping and has_filter and active) as active_series
  from series group by project_id
)
select count(*) filter (where has_series)::integer as "projectCount", coalesce(sum(active_series), 0)::integer as "activeCount",
  count(*) filter (where active and active_series = 0)::integer as "leftOutCount",
  (
    select coalesce(json_agg(json_build_object('id', project_id, 'name', name)), '[]')
    from (select * from project where has_series order by name collate "C", project_id limit ${NAMES_MAX}) named
  ) as projects,
  (
    select coalesce(json_agg(name), '[]')
    from (select name from project where active and active_series = 0 order by name collate "C" limit ${NAMES_MAX}) named
  ) as "leftOut",
  ${names('"grouping"', "active and has_filter")} as groupings,
  ${names("filter", "active and has_grouping and not unfiltered")} as filters
from project`;
}

function filterCondition({ filter }: Scope): string {
  return filter === undefined ? "unfiltered" : `(not unfiltered and filter = ${literal(filter)})`;
}

/** A day of the series of a question. */
export type CoveredDay = {
  readonly day: Day;
  /** How many series have a row in bi.coverage. */
  readonly series: number;
  readonly active: number;
  readonly incomplete: number;
  readonly settling: number;
};

export type Gap = {
  readonly project: string;
  readonly status: "missing" | "failed" | "suspect" | "open";
  readonly from: Day;
  readonly to: Day;
  readonly days: number;
  readonly error: string | null;
};

export async function readCoveredDays(
  run: Run,
  question: Question,
  scope: Scope,
): Promise<ReadonlyMap<Day, CoveredDay>> {
  const windows = [question.period, ...(question.before ? [question.before] : [])];
  const days = await run<CoveredDay>(`
select usage_date as day, count(*)::integer as series, count(*) filter (where active)::integer as active,
  count(*) filter (where ${IS_INCOMPLETE})::integer as incomplete,
  count(*) filter (where finality = 'settling')::integer as settling
from bi.coverage
where ${coverageConditions(question, scope, windows)}
group by usage_date`);
  return new Map(days.map((day) => [day.day, day]));
}

/** What the period lacks, by project; at most 20 stretches. */
export async function readGaps(run: Run, question: Question, scope: Scope): Promise<readonly Gap[]> {
  return run<Gap>(`
select project, state as status, min(usage_date) as "from", max(usage_date) as "to", count(*)::integer as days,
  (array_agg(error order by usage_date desc))[1] as error
from (
  select *, case when status = 'complete' then 'open' else status end as state from bi.coverage
  where ${coverageConditions(question, scope, [question.period])} and ${IS_INCOMPLETE}
) incomplete
group by project_id, project, state
order by days desc, project collate "C", status
limit ${NAMES_MAX}`);
}

/** The numbers of the day are too low, or may be. */
const IS_INCOMPLETE = "(status <> 'complete' or finality = 'open')";

function coverageConditions({ grouping }: Question, scope: Scope, windows: readonly Window[]): string {
  return [
    `source = 'usage' and "grouping" = ${literal(grouping)} and ${filterCondition(scope)}`,
    ...(scope.projectId === undefined ? [] : [`project_id = ${literal(scope.projectId)}`]),
    `(${windows.map(within).join(" or ")})`,
  ].join("\n  and ");
}
