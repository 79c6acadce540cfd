// The views and the conditions with the numbers of a question. Only views of schema bi are read, so that a person can copy a statement and run it
// as usage_reader. Pure.

import type { Window } from "../usage/days.ts";
import { isCost, type Question, type Split, splitsOf } from "./question.ts";

/** What the names in a question stand for, from the series that are stored. */
export type Scope = {
  /** Undefined for all projects. */
  readonly projectIds: readonly string[] | undefined;
  /** Undefined for all usage. */
  readonly filter: string | undefined;
  /** The currency of a cost; undefined for usage, and if no price is configured. */
  readonly currency?: string | undefined;
};

/** Writes a text as a literal that means the same in every session. Characters that are invisible or turn the text's direction are escaped. */
export function literal(text: string): string {
  const escaped = text.replaceAll("'", "''").replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (char === "\\") return "\\\\";
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return escaped.includes("\\") ? `E'${escaped}'` : `'${escaped}'`;
}

/** The view with the rows of a question, the column with their group, and all conditions except those of the days. */
export function sourceOf(question: Question, scope: Scope) {
  const source = isCost(question.metric) ? costSource(question, scope) : usageSource(question, scope);
  const added = [...projectConditions(scope), ...groupConditions(question, source.column)];
  return { ...source, conditions: [...source.conditions, ...added] };
}

export function projectConditions({ projectIds }: Pick<Scope, "projectIds">): readonly string[] {
  return projectIds === undefined ? [] : [`project_id in (${projectIds.map(literal).join(", ") || "null"})`];
}

export function groupConditions({ group }: Question, column: string): readonly string[] {
  if (group === undefined) return [];
  return [group.value === null ? `${column} is null` : `${column} = ${literal(group.value)}`];
}

function usageSource(question: Question, { filter }: Scope) {
  const { grouping } = question;
  const column = columnOf(question);
  if (filter === undefined) return { view: `bi.usage_${VIEWS[grouping] ?? `by_${grouping}`}`, column, conditions: [] };
  return {
    view: grouping === "accessor" ? FILTERED_BY_KEY : "bi.usage_filtered",
    column: column === grouping ? "group_value" : column,
    conditions: [`"grouping" = ${literal(seriesGrouping(grouping))}`, `filter = ${literal(filter)}`],
  };
}

/** The grouping of the series that a split is read from. */
function seriesGrouping(split: Split): Exclude<Split, "project"> {
  return split === "project" ? "none" : split;
}

/** Amounts of different currencies are never added up. The rows of bi.cost_total are those of bi.cost_by_group with the grouping none. */
function costSource(question: Question, { filter, currency = "" }: Scope) {
  const inCurrency = `currency = ${literal(currency)}`;
  const column = columnOf(question);
  if (question.metric === "estimated_cost") return { view: "bi.cost_estimated", column, conditions: [inCurrency] };
  const filtered = filter === undefined ? [] : [`filter = ${literal(filter)}`];
  return {
    view: filter === undefined ? "bi.cost_by_group" : "bi.cost_filtered",
    column,
    conditions: [`"grouping" = ${literal(seriesGrouping(question.grouping))}`, ...filtered, inCurrency],
  };
}

/** The names of views that are not called after the split. */
const VIEWS: Readonly<Partial<Record<Split, string>>> = {
  ...{ none: "total", project: "total", line_item: "total" },
  accessor: "by_key",
};

/** Filtered usage with the column `lineage` of bi.usage_by_key. */
const FILTERED_BY_KEY = `(
    select u.*, coalesce(k.rotation, u.group_value) as lineage
    from bi.usage_filtered u left join bi.api_keys k on k.project_id = u.project_id and k.api_key_id = u.group_value
  ) usage`;

/** All keys of a rotation are one group, as the key changes with every rotation. */
const COLUMNS: Readonly<Partial<Record<Split, string>>> = {
  none: "null::text",
  accessor: "lineage",
  project: "project_id",
};

/** A metric has no groups by a split by which it is not known. */
function columnOf({ metric, grouping }: Question): string {
  return splitsOf(metric).includes(grouping) ? (COLUMNS[grouping] ?? grouping) : "null::text";
}

export function within({ start, end }: Window): string {
  return `usage_date between date ${literal(start)} and date ${literal(end)}`;
}

export function anyOf(windows: readonly Window[]): string {
  return `(${windows.map(within).join(" or ")})`;
}

export function sourceLiteral({ metric }: Question): string {
  return metric === "billed_cost" ? "'billing'" : "'usage'";
}

/** An estimate is made from the series by model, because usage is priced by model. */
export function groupingCondition({ metric, grouping }: Question): string {
  if (!splitsOf(metric).includes(grouping)) return "false";
  return `"grouping" = ${literal(metric === "estimated_cost" ? "model" : seriesGrouping(grouping))}`;
}

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
    anyOf(windows),
  ].join("\n  and ");
}
