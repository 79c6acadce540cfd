// Which stored series a question is about, and on which days their numbers can be relied on.

import { didYouMean } from "../config/messages.ts";
import type { Query } from "../db/connection/transaction.ts";
import { type Day, daysOf, type Window } from "../usage/days.ts";
import { METRICS } from "../usage/metrics.ts";
import { type Answer, type Basis, type DayWithState, lackingDays, type Unpriced } from "./answer.ts";
import {
  coverageConditions,
  filterCondition,
  groupConditions,
  groupingCondition,
  InvalidQuestion,
  isCost,
  literal,
  projectConditions,
  type Question,
  type Scope,
  type Split,
  sourceLiteral,
  splitsOf,
  viewAndConditions,
  within,
  withinAny,
} from "./question.ts";

export type { Query };

const NAMES_MAX = 20;
const CANDIDATES_MAX = 1_000;

/** `active`: at least one of its series is still exported. */
type FoundProject = { readonly id: string; readonly name: string; readonly active: boolean };

/** The facts about the series that have the question's grouping and filter. */
type StoredFacts = Pick<Answer, "projects" | "projectCount"> & {
  /** How many of these series are still exported. */
  readonly activeCount: number;
  /** Exported projects without such a series; at most NAMES_MAX. */
  readonly leftOut: readonly string[];
  readonly leftOutCount: number;
  /** Projects that have such series, none of which is still exported. */
  readonly retired: readonly FoundProject[];
  /** The groupings of the exported series that have the question's filter. */
  readonly groupings: readonly Split[];
  /** The filters, except those without conditions, of the exported series that have the question's grouping. */
  readonly filters: string[];
};

/**
 * Throws InvalidQuestion for an unknown project, filter or currency. The states of days are read from `since` on (default: the first day asked for).
 * `since` may be earlier: questions with the same series, `since` and last day then run the same statement, whose rows a cache keeps.
 */
export async function readBasis(query: Query, question: Question, since?: Day): Promise<Basis> {
  const projectIds = question.projects && (await findProjects(query, question.projects));
  if (question.filter !== undefined) await requireFilter(query, question.filter);
  const currencies = question.metric === "estimated_cost" ? await readCurrencies(query, question.currency) : [];
  const currency = question.metric === "billed_cost" ? "USD" : (question.currency ?? currencies[0]);
  const scope = { projectIds, filter: question.filter, ...(isCost(question.metric) && { currency }) };
  const [row] = await query<StoredFacts>(factsSql(question, scope));
  if (!row) throw new Error("expected one row with the facts about the series");
  const { retired, leftOut, leftOutCount, groupings, filters, projects, projectCount, activeCount } = row;
  const { ended, withoutDays } = await classifyRetired(query, question, scope, retired);
  const states = await readDayStates(query, question, scope, activeCount, since);
  const days = withStates(question.period, states);
  const daysBefore = question.before && withStates(question.before, states);
  const lacking = lackingDays(days, daysBefore);
  const isAllRead = ended.length === 0 && Object.values(lacking).every((list) => list.length === 0);
  return {
    scope: { ...scope, projects, projectCount, available: { ...choices(question, groupings, filters), currencies } },
    days,
    daysBefore,
    isCompared: daysBefore !== undefined && isAllRead,
    lacking: {
      ...lacking,
      projectsLeftOut: [...leftOut, ...withoutDays].sort().slice(0, NAMES_MAX),
      projectsLeftOutCount: leftOutCount + withoutDays.length,
      projectsEnded: ended.slice(0, NAMES_MAX),
      projectsEndedCount: ended.length,
    },
  };
}

/** A day without a state has no row in bi.coverage. */
function withStates(window: Window, states: ReadonlyMap<Day, DayWithState["state"]>): DayWithState[] {
  return daysOf(window).map((day) => ({ day, state: states.get(day) ?? "unread" }));
}

/** Groupings and filters to choose instead. An estimate has no filters: each price is applied to the usage that meets its own conditions. */
function choices({ metric }: Question, groupings: readonly Split[], filters: string[]) {
  if (metric === "estimated_cost") return { groupings: [...splitsOf(metric)], filters: [] };
  const known: readonly Split[] = groupings.includes("none") ? [...groupings, "project"] : groupings;
  return { groupings: known.filter((one) => splitsOf(metric).includes(one)), filters };
}

/** The currencies of all prices. Throws InvalidQuestion if `currency` is given and is not among them. */
export async function readCurrencies(query: Query, currency?: string): Promise<string[]> {
  const rows = await query<{ name: string }>("select distinct currency as name from bi.price_book order by 1");
  const names = rows.map(({ name }) => name);
  if (currency === undefined || names.includes(currency)) return names;
  throw new InvalidQuestion(`currency: no price is in ${JSON.stringify(currency)}${didYouMean(currency, names)}`);
}

/** The usage of the period for which there is no price. All usage without a model counts as one model. */
export async function readUnpriced(query: Query, question: Question, scope: Scope): Promise<Unpriced> {
  const ofModel = question.grouping === "model" ? groupConditions(question, "model") : [];
  const conditions = [within(question.period), ...projectConditions(scope), ...ofModel];
  // Reading bi.cost_estimated takes ten times as long: it has a row for each day, model and metric.
  const [unpriced] = await query<Unpriced>(`
select count(distinct coalesce(model, ''))::integer as "unpricedModels",
  coalesce(array_agg(distinct metric order by metric), '{}') as "unpricedMetrics"
from (
  select model, ${METRICS.map((metric) => `bool_or(unpriced_${metric}) as ${metric}`).join(", ")}
  from usage_export.unpriced_usage where ${conditions.join(" and ")} group by model
) found
cross join lateral (values ${METRICS.map((metric) => `('${metric}', ${metric})`).join(", ")}) as m (metric, is_unpriced)
where is_unpriced`);
  return unpriced ?? { unpricedModels: 0, unpricedMetrics: [] };
}

/** `ended`: projects with some of the question's days, but not all. `withoutDays`: projects with none, but with other series still exported. */
async function classifyRetired(query: Query, question: Question, scope: Scope, retired: readonly FoundProject[]) {
  if (retired.length === 0) return { ended: [], withoutDays: [] };
  const windows = question.before ? [question.period, question.before] : [question.period];
  const isRetired = `project_id in (${retired.map(({ id }) => literal(id)).join(", ")})`;
  const { view, conditions } = viewAndConditions({ ...question, group: undefined }, scope);
  // If the newest reading of a day failed and its series is retired, bi.coverage leaves the day out, but its rows are in the amounts.
  const known = await query<{ id: string; days: number }>(`
select project_id as id, max(days)::integer as days from (
  select project_id, count(distinct usage_date) as days from bi.coverage
  where ${coverageConditions(question, scope, windows)} and ${isRetired}
  group by project_id
  union all
  select project_id, 0 from ${view}
  where ${[withinAny(windows), isRetired, ...conditions].join(" and ")}
  group by project_id
) known
group by project_id`);
  const daysKnown = new Map(known.map(({ id, days }) => [id, days]));
  const dayCount = new Set(windows.flatMap(daysOf)).size;
  return {
    ended: retired.filter(({ id }) => daysKnown.has(id) && daysKnown.get(id) !== dayCount).map(({ name }) => name),
    withoutDays: retired.filter(({ id, active }) => active && !daysKnown.has(id)).map(({ name }) => name),
  };
}

/** The identifiers of projects that are given by name or identifier. If several have had the same name, the one still exported is meant. */
export async function findProjects(query: Query, names: readonly string[]): Promise<readonly string[]> {
  const listed = names.map(literal).join(", ");
  const found = await query<FoundProject>(`
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
  const withConditions = filters.filter(({ unfiltered }) => !unfiltered);
  if (withConditions.some((one) => one.name === name)) return;
  if (filters.some((one) => one.name === name))
    throw new InvalidQuestion(`filter: ${JSON.stringify(name)} has no conditions and is all usage; leave filter out`);
  throw unknownName("filter", name, withConditions);
}

function unknownName(what: "project" | "filter", name: string, known: readonly { readonly name: string }[]) {
  const names = known.map((one) => one.name);
  const text = `${what}: no usage of a ${what} ${JSON.stringify(name)} was ever exported${didYouMean(name, names)}`;
  return new InvalidQuestion(text);
}

function factsSql(question: Question, scope: Scope): string {
  const from = `from bi.series where ${[`source = ${sourceLiteral(question)}`, ...projectConditions(scope)].join(" and ")}`;
  const [hasGrouping, hasFilter] = [groupingCondition(question), filterCondition(question, scope)];
  const splits = splitsOf(question.metric).filter((one) => one !== "project");
  // Comparing names by the database's collation would take longer than the rest of the statement.
  return `
with project as materialized (
  select project_id, coalesce(min(project collate "C") filter (where active), min(project collate "C")) as name, bool_or(active) as active,
    bool_or(${hasGrouping} and ${hasFilter}) as has_series,
    count(*) filter (where ${hasGrouping} and ${hasFilter} and active) as active_series
  ${from} group by project_id
)
select count(*) filter (where has_series)::integer as "projectCount", coalesce(sum(active_series), 0)::integer as "activeCount",
  count(*) filter (where active and not has_series)::integer as "leftOutCount",
  array(select name from project where has_series order by name, project_id limit ${NAMES_MAX}) as projects,
  array(select name from project where active and not has_series order by name limit ${NAMES_MAX}) as "leftOut",
  (
    select coalesce(json_agg(json_build_object('id', project_id, 'name', name, 'active', active) order by name), '[]')
    from project where has_series and active_series = 0
  ) as retired,
  -- For each grouping, "exists" stops at the first series.
  array(
    select split from unnest(array[${splits.map(literal).join(", ")}]) as split
    where exists (select ${from} and active and ${hasFilter} and "grouping" = split) order by 1
  ) as groupings,
  array(select distinct filter ${from} and active and ${hasGrouping} and not unfiltered order by 1 limit ${CANDIDATES_MAX}) as filters
from project`;
}

async function readDayStates(query: Query, question: Question, scope: Scope, activeCount: number, since?: Day) {
  const { period, before } = question;
  // One range, which includes the days between the periods: given two ranges, Postgres would read all days of a series.
  const days = { start: since ?? before?.start ?? period.start, end: period.end };
  const rows = await query<DayWithState>(`
select usage_date as day, case
    when bool_or(${incompleteSql(question, scope, days)}) then 'incomplete'
    when count(*) filter (where active) < ${activeCount} then 'unread'
    when bool_or(finality = 'settling') then 'settling' else 'final'
  end as state
from bi.coverage
where ${coverageConditions(question, scope, [days])}
group by usage_date`);
  return new Map(rows.map(({ day, state }) => [day, state]));
}

/** The condition that the numbers of a day are too low, or may be. */
function incompleteSql(question: Question, scope: Scope, days: Window): string {
  const isNotRead = "status <> 'complete' or finality = 'open'";
  if (question.metric !== "billed_cost") return `(${isNotRead})`;
  // A charge may have no amount: then it is unknown, not 0.
  const { view, conditions } = viewAndConditions(question, scope);
  const isUnknown = [within(days), ...conditions, "amount is null"];
  return `(${isNotRead} or (project_id, usage_date) in (
    select project_id, usage_date from ${view} where ${isUnknown.join(" and ")}
  ))`;
}
