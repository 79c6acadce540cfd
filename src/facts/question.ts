// A question about usage or cost names what is added up, for which days and projects, and how it is split. This file also finds the view and
// the SQL conditions for the numbers. They use only schema bi, so that a person can run the statement as usage_reader. Pure.

import type { Window } from "../usage/days.ts";
import { METRICS } from "../usage/metrics.ts";
import { GROUPINGS } from "../usage/series.ts";

export const COSTS = ["estimated_cost", "billed_cost"] as const;
export const ASKED_METRICS = [...METRICS, ...COSTS] as const;
export type AskedMetric = (typeof ASKED_METRICS)[number];

export function isCost(metric: AskedMetric): metric is (typeof COSTS)[number] {
  return metric === "estimated_cost" || metric === "billed_cost";
}

/** What an amount can be split by: the groupings of usage, the line item of a billed cost, and the project. */
export const SPLITS = [...GROUPINGS, "line_item", "project"] as const;
export type Split = (typeof SPLITS)[number];

const COST_SPLITS: Readonly<Record<(typeof COSTS)[number], readonly Split[]>> = {
  estimated_cost: ["none", "model", "project"],
  billed_cost: ["none", "accessor", "deployment", "tags", "line_item", "project"],
};

export function splitsOf(metric: AskedMetric): readonly Split[] {
  return isCost(metric) ? COST_SPLITS[metric] : SPLITS.filter((one) => one !== "line_item");
}

export const SORTS = ["amount", "change"] as const;

export type Question = {
  readonly period: Window;
  readonly before?: Window | undefined;
  /** Names or identifiers; left out for all. */
  readonly projects?: readonly string[] | undefined;
  readonly metric: AskedMetric;
  /** Left out for the first currency in alphabetical order. */
  readonly currency?: string | undefined;
  readonly grouping: Split;
  /** The name of a filter; left out for all usage. */
  readonly filter?: string | undefined;
  /** The only group that is asked for; its value is null for "no value". */
  readonly group?: { readonly value: string | null } | undefined;
  /** How many groups are listed; the others are added up. */
  readonly limit: number;
  readonly sort: (typeof SORTS)[number];
};

/** The question can't be answered as asked, for example about an unknown project. The message says which parameter is wrong. */
export class InvalidQuestion extends Error {
  override readonly name = "InvalidQuestion";
}

/** The project, filter and currency of a question, as the database identifies them. */
export type Scope = {
  /** Undefined for all projects. */
  readonly projectIds: readonly string[] | undefined;
  /** Undefined for all usage. */
  readonly filter: string | undefined;
  /** The currency of a cost; undefined for usage, and if no price is configured. */
  readonly currency?: string | undefined;
};

/** An SQL literal that means the same in every session. Characters that are invisible or turn the text's direction are escaped. */
export function literal(text: string): string {
  const escaped = text.replaceAll("'", "''").replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (char === "\\") return "\\\\";
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return escaped.includes("\\") ? `E'${escaped}'` : `'${escaped}'`;
}

/** The view with the rows of a question, the column with their group, and all conditions except those of the days. */
export function viewAndConditions(question: Question, scope: Scope) {
  const column = columnOf(question, scope);
  const { view, conditions } = isCost(question.metric) ? costView(question, scope) : usageView(question, scope);
  const added = [...projectConditions(scope), ...groupConditions(question, column)];
  return { view, column, conditions: [...conditions, ...added] };
}

/** `lineage` puts all keys of a rotation into one group: otherwise each new key would begin a group of its own. */
function columnOf({ metric, grouping }: Question, { filter }: Scope): string {
  if (grouping === "none" || !splitsOf(metric).includes(grouping)) return "null::text";
  if (grouping === "project") return "project_id";
  if (grouping === "accessor") return "lineage";
  return filter === undefined || isCost(metric) ? grouping : "group_value";
}

export function projectConditions({ projectIds }: Pick<Scope, "projectIds">): readonly string[] {
  return projectIds === undefined ? [] : [`project_id in (${projectIds.map(literal).join(", ") || "null"})`];
}

export function groupConditions({ group }: Question, column: string): readonly string[] {
  if (group === undefined) return [];
  return [group.value === null ? `${column} is null` : `${column} = ${literal(group.value)}`];
}

function usageView({ grouping }: Question, { filter }: Scope) {
  if (filter === undefined) return { view: `bi.usage_${ENDINGS[grouping] ?? `by_${grouping}`}`, conditions: [] };
  const view = grouping === "accessor" ? FILTERED_BY_KEY : "bi.usage_filtered";
  return { view, conditions: [seriesCondition(grouping), `filter = ${literal(filter)}`] };
}

/** The condition for the series that a split is read from. */
function seriesCondition(split: Split): string {
  return `"grouping" = ${literal(split === "project" ? "none" : split)}`;
}

/** Never adds up currencies. bi.cost_by_group has the totals, too (grouping none). Filters are only for the billed cost. */
function costView({ metric, grouping }: Question, { filter, currency = "" }: Scope) {
  const inCurrency = `currency = ${literal(currency)}`;
  if (metric === "estimated_cost") return { view: "bi.cost_estimated", conditions: [inCurrency] };
  const byGrouping = seriesCondition(grouping);
  if (filter === undefined) return { view: "bi.cost_by_group", conditions: [byGrouping, inCurrency] };
  return { view: "bi.cost_filtered", conditions: [byGrouping, `filter = ${literal(filter)}`, inCurrency] };
}

/** How the name of the view ends, if not with `by_SPLIT`. Usage has no line items: a question by them gets the total, with a null column. */
const ENDINGS: { [S in Split]?: string } = { none: "total", project: "total", line_item: "total", accessor: "by_key" };

/** Filtered usage with the column `lineage` of bi.usage_by_key. */
const FILTERED_BY_KEY = `(
    select u.*, coalesce(k.rotation, u.group_value) as lineage
    from bi.usage_filtered u left join bi.api_keys k on k.project_id = u.project_id and k.api_key_id = u.group_value
  ) usage`;

export function within({ start, end }: Window): string {
  return `usage_date between date ${literal(start)} and date ${literal(end)}`;
}

export function withinAny(windows: readonly Window[]): string {
  return `(${windows.map(within).join(" or ")})`;
}

export function sourceLiteral({ metric }: Question): string {
  return metric === "billed_cost" ? "'billing'" : "'usage'";
}

/** An estimate is made from the series by model, because usage is priced by model. */
export function groupingCondition({ metric, grouping }: Question): string {
  if (!splitsOf(metric).includes(grouping)) return "false";
  return seriesCondition(metric === "estimated_cost" ? "model" : grouping);
}

/** A cost is estimated from all usage and from filters with the conditions of a price. There is no estimate by filter. */
export function filterCondition({ metric }: Question, { filter }: Scope): string {
  if (metric === "estimated_cost" && filter !== undefined) return "false";
  if (metric === "estimated_cost") return "(unfiltered or conditions in (select conditions from bi.price_book))";
  return filter === undefined ? "unfiltered" : `(not unfiltered and filter = ${literal(filter)})`;
}

/** The conditions of bi.coverage for the series and days of a question. */
export function coverageConditions(question: Question, scope: Scope, windows: readonly Window[]): string {
  return [
    `source = ${sourceLiteral(question)} and ${groupingCondition(question)} and ${filterCondition(question, scope)}`,
    ...projectConditions(scope),
    withinAny(windows),
  ].join("\n  and ");
}
