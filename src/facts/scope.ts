// Which stored series a question is about, and on which days their numbers can be relied on, from views of schema bi.

import { didYouMean } from "../config/messages.ts";
import type { Query } from "../db/connection/transaction.ts";
import { type Day, daysOf, type Window } from "../usage/days.ts";
import type { Metric } from "../usage/metrics.ts";
import { InvalidQuestion, isCost, type Question, SPLITS, type Split, splitsOf } from "./question.ts";
import {
  anyOf,
  coverageConditions,
  filterCondition,
  groupConditions,
  groupingCondition,
  literal,
  projectConditions,
  type Scope,
  sourceLiteral,
  sourceOf,
  within,
} from "./sql.ts";

export type { Query };

const NAMES_MAX = 20;
const CANDIDATES_MAX = 1_000;

/** "Such a series" has the grouping and the filter of the question. */
export type SeriesFacts = {
  /** The projects of the question that have such a series; at most 20. */
  readonly projects: readonly ProjectName[];
  readonly projectCount: number;
  /** How many of these series are still exported. */
  readonly activeCount: number;
  /** Projects whose usage is exported, but not by such a series; at most 20. */
  readonly leftOut: readonly string[];
  readonly leftOutCount: number;
  /** Projects whose usage is among the amounts, but not on every day, because they are no longer exported by such a series; at most 20. */
  readonly ended: readonly string[];
  readonly endedCount: number;
  /** The groupings that are exported under the filter. */
  readonly groupings: readonly Split[];
  /** The filters with conditions that are exported by the grouping. */
  readonly filters: readonly string[];
  /** The currencies of the prices, by name. */
  readonly currencies: readonly string[];
};

type ProjectName = { readonly id: string; readonly name: string };
/** A project that had such a series, and has none now. `active`: it is exported by another series. */
type RetiredProject = ProjectName & { readonly active: boolean };

/** Throws InvalidQuestion if there is no such project or filter. */
export async function readScope(query: Query, question: Question): Promise<Scope & SeriesFacts> {
  const projects = question.projects && (await findProjects(query, question.projects));
  if (question.filter !== undefined) await requireFilter(query, question.filter);
  const currencies = question.metric === "estimated_cost" ? await readCurrencies(query, question) : [];
  const currency = question.metric === "billed_cost" ? "USD" : (question.currency ?? currencies[0]);
  const scope = { projectIds: projects, filter: question.filter, ...(isCost(question.metric) && { currency }) };
  type Row = Omit<SeriesFacts, "ended" | "endedCount" | "currencies"> & { readonly retired: readonly RetiredProject[] };
  const [row] = await query<Row>(factsSql(question, scope));
  if (!row) throw new Error("expected one row with the facts about the series");
  const { retired, ...facts } = row;
  const { ended, unused } = await sortRetired(query, question, scope, retired);
  return {
    ...{ ...scope, ...facts, currencies, ...choices(question, facts) },
    leftOut: [...facts.leftOut, ...unused].sort().slice(0, NAMES_MAX),
    leftOutCount: facts.leftOutCount + unused.length,
    ended: ended.slice(0, NAMES_MAX),
    endedCount: ended.length,
  };
}

/** By which groupings and filters the metric can be asked for. Prices have conditions of their own, so an estimate has no filters. */
function choices({ metric }: Question, { groupings, filters }: Pick<SeriesFacts, "groupings" | "filters">) {
  if (metric === "estimated_cost") return { groupings: splitsOf(metric), filters: [] };
  const known: readonly Split[] = groupings.includes("none") ? [...groupings, "project"] : groupings;
  return { groupings: known.filter((one) => splitsOf(metric).includes(one)), filters };
}

/** The currencies of the prices. Throws InvalidQuestion if the one that is asked for is not among them. */
export async function readCurrencies(query: Query, { currency }: Question): Promise<readonly string[]> {
  const rows = await query<{ name: string }>("select distinct currency as name from bi.price_book order by 1");
  const names = rows.map(({ name }) => name);
  if (currency === undefined || names.includes(currency)) return names;
  throw new InvalidQuestion(`currency: no price is in ${JSON.stringify(currency)}${didYouMean(currency, names)}`);
}

/** The usage of the period for which there is no price. */
export type Unpriced = {
  /** How many models it has. All usage without a model counts as one. */
  readonly models: number;
  readonly metrics: readonly Metric[];
};

export async function readUnpriced(query: Query, question: Question, scope: Scope): Promise<Unpriced> {
  const conditions = [
    `status = 'unpriced' and "grouping" = 'model' and ${within(question.period)}`,
    ...projectConditions(scope),
    ...(question.grouping === "model" ? groupConditions(question, "model") : []),
  ];
  const [unpriced] = await query<Unpriced>(`
select count(distinct coalesce(model, ''))::integer as models, coalesce(array_agg(distinct metric order by metric), '{}') as metrics
from bi.cost_estimated where ${conditions.join(" and ")}`);
  return unpriced ?? { models: 0, metrics: [] };
}

/** The retired projects that have some days of the question and lack others, and those that have none but are exported otherwise. */
async function sortRetired(query: Query, question: Question, scope: Scope, retired: readonly RetiredProject[]) {
  if (retired.length === 0) return { ended: [], unused: [] };
  const windows = windowsOf(question);
  const isRetired = `project_id in (${retired.map(({ id }) => literal(id)).join(", ")})`;
  const { view, conditions } = sourceOf({ ...question, group: undefined }, scope);
  // bi.coverage leaves out the days of a retired series whose newest reading failed, but their rows are in the amounts.
  const known = await query<{ id: string; days: number }>(`
select project_id as id, max(days)::integer as days from (
  select project_id, count(distinct usage_date) as days from bi.coverage
  where ${coverageConditions(question, scope, windows)} and ${isRetired}
  group by project_id
  union all
  select project_id, 0 from ${view}
  where ${[anyOf(windows), isRetired, ...conditions].join(" and ")}
  group by project_id
) known
group by project_id`);
  const daysKnown = new Map(known.map(({ id, days }) => [id, days]));
  const dayCount = new Set(windows.flatMap(daysOf)).size;
  return {
    ended: retired.filter(({ id }) => (daysKnown.get(id) ?? dayCount) < dayCount).map(({ name }) => name),
    unused: retired.filter(({ id, active }) => active && !daysKnown.has(id)).map(({ name }) => name),
  };
}

function windowsOf({ period, before }: Question): readonly Window[] {
  return before ? [period, before] : [period];
}

/** The identifiers of these projects. If several projects have had a name, the one that is still exported has it. */
export async function findProjects(query: Query, names: readonly string[]): Promise<readonly string[]> {
  const listed = names.map(literal).join(", ");
  const found = await query<ProjectName & { readonly active: boolean }>(`
    select project_id as id, project as name, bool_or(active) as active from bi.series
    where project_id in (${listed}) or project in (${listed})
    group by 1, 2 order by 1`);
  const ids = new Set<string>();
  for (const name of names) {
    const named = found.filter((one) => one.id === name || one.name === name);
    const active = named.filter((one) => one.active);
    const meant = [...new Set((active.length > 0 ? active : named).map(({ id }) => id))];
    if (meant.length > 1)
      throw new InvalidQuestion(
        `project: ${JSON.stringify(name)} is the name of several projects; use the identifier of one, such as ${meant.join(" or ")}`,
      );
    if (meant[0] === undefined) {
      const known = `select distinct project as name from bi.series limit ${CANDIDATES_MAX}`;
      throw unknownName("project", name, await query(known));
    }
    ids.add(meant[0]);
  }
  return [...ids];
}

async function requireFilter(query: Query, name: string): Promise<void> {
  const filters = await query<{ name: string; unfiltered: boolean }>(`
    select distinct filter as name, unfiltered from bi.series limit ${CANDIDATES_MAX}`);
  const withName = filters.filter((filter) => filter.name === name);
  if (withName.some(({ unfiltered }) => !unfiltered)) return;
  if (withName.length > 0)
    throw new InvalidQuestion(`filter: ${JSON.stringify(name)} has no conditions and is all usage; leave filter out`);
  const known = filters.filter(({ unfiltered }) => !unfiltered);
  throw unknownName("filter", name, known);
}

function unknownName(what: "project" | "filter", name: string, known: readonly { readonly name: string }[]) {
  const names = known.map((one) => one.name);
  const text = `${what}: no usage of a ${what} ${JSON.stringify(name)} was ever asked for${didYouMean(name, names)}`;
  return new InvalidQuestion(text);
}

function factsSql(question: Question, scope: Scope): string {
  const names = (from: string, condition: string) => `(
    select coalesce(json_agg(name), '[]') from (
      select distinct ${from} as name from series where ${condition} order by 1 limit ${CANDIDATES_MAX}
    ) names
  )`;
  return `
with series as materialized (
  select project_id, project, "grouping", filter, active, unfiltered,
    ${groupingCondition(question)} as has_grouping, ${filterCondition(question, scope)} as has_filter
  from bi.series where ${[`source = ${sourceLiteral(question)}`, ...projectConditions(scope)].join(" and ")}
), project as (
  select project_id, coalesce(min(project) filter (where active), min(project)) as name, bool_or(active) as active,
    bool_or(has_grouping and has_filter) as has_series,
    count(*) filter (where has_grouping and has_filter and active) as active_series
  from series group by project_id
)
select count(*) filter (where has_series)::integer as "projectCount", coalesce(sum(active_series), 0)::integer as "activeCount",
  count(*) filter (where active and not has_series)::integer as "leftOutCount",
  (
    select coalesce(json_agg(json_build_object('id', project_id, 'name', name)), '[]')
    from (select * from project where has_series order by name collate "C", project_id limit ${NAMES_MAX}) named
  ) as projects,
  (
    select coalesce(json_agg(name), '[]')
    from (select name from project where active and not has_series order by name collate "C" limit ${NAMES_MAX}) named
  ) as "leftOut",
  (
    select coalesce(json_agg(json_build_object('id', project_id, 'name', name, 'active', active) order by name collate "C"), '[]')
    from project where has_series and active_series = 0
  ) as retired,
  ${names('"grouping"', `active and has_filter and "grouping" in (${SPLITS.map(literal).join(", ")})`)} as groupings,
  ${names("filter", "active and has_grouping and not unfiltered")} as filters
from project`;
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

export async function readCoveredDays(query: Query, question: Question, scope: Scope) {
  const days = await query<CoveredDay>(`
select usage_date as day, count(*)::integer as series, count(*) filter (where active)::integer as active,
  count(*) filter (where ${isIncomplete(question, scope)})::integer as incomplete,
  count(*) filter (where finality = 'settling')::integer as settling
from bi.coverage
where ${coverageConditions(question, scope, windowsOf(question))}
group by usage_date`);
  return new Map(days.map((day) => [day.day, day]));
}

/** The condition that the numbers of a day are too low, or may be. */
function isIncomplete(question: Question, scope: Scope): string {
  const isNotRead = "status <> 'complete' or finality = 'open'";
  if (question.metric !== "billed_cost") return `(${isNotRead})`;
  // A charge without an amount is not a charge of 0.
  const { view, conditions } = sourceOf(question, scope);
  const isUnknown = [anyOf(windowsOf(question)), ...conditions, "amount is null"];
  return `(${isNotRead} or (project_id, usage_date) in (
    select project_id, usage_date from ${view} where ${isUnknown.join(" and ")}
  ))`;
}
