// The SQL of a question. The statements read views of schema bi only, so a person can copy them and run them as usage_reader. Pure.

import { addDays, type Window } from "../usage/days.ts";
import { addsUp } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { isCost, type Question, type Split, splitsOf } from "./question.ts";

/** How many groups have amounts by day. */
export const DRAWN_MAX = 8;

/** What the names in a question stand for, from the series that are stored. */
export type Scope = {
  /** Undefined for all projects. */
  readonly projectIds: readonly string[] | undefined;
  /** Undefined for all usage. */
  readonly filter: string | undefined;
  /** The currency of a cost; undefined for usage, and if no price is configured. */
  readonly currency?: string | undefined;
};

/** Statements as a person would write them, for people to copy: of the groups, and of the groups by day. */
export type CopiedSql = { readonly groups: string; readonly days: string };

/** A literal with the same meaning whatever the settings of the session. Invisible characters and those that change the direction of a text are written as escapes. */
export function literal(text: string): string {
  const escaped = text.replaceAll("'", "''").replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (char === "\\") return "\\\\";
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return escaped.includes("\\") ? `E'${escaped}'` : `'${escaped}'`;
}

/**
 * One row for each listed group, one for the others together, and one for the total; and the same of each day, for the largest groups.
 * `isCompared`: all days of both periods were read, so that the difference is a change.
 */
export function usageSql(question: Question, scope: Scope, isCompared: boolean): string {
  return `${usageOf(question, scope, isCompared)}
select * from (
select part, rank, "group", null::date as usage_date, amount, amount_before, change, groups from (
${groupsOf(question, isCompared)}
) by_group
union all
select part || ' of day', rank, "group", usage_date, amount, null, null, null from (
${daysOf(question)}
) by_day
) answer
order by part, rank`;
}

/** Has every group, also one of which all amounts are 0. */
export function copiedSql(question: Question, scope: Scope, isCompared: boolean): CopiedSql {
  const { view, column, conditions } = sourceOf(question, scope);
  const { metric, grouping, period, before } = question;
  const amount = isCost(metric) ? "amount" : metric;
  const group = grouping === "none" ? [] : [column];
  const where = (windows: readonly Window[]) =>
    `from ${view}\nwhere ${[windows.map(within).join(" or "), ...conditions].map((one, i) => (i === 0 && windows.length > 1 ? `(${one})` : one)).join("\n  and ")}`;
  const sums =
    before && isCompared
      ? [
          `sum(${amount}) filter (where ${within(period)}) as ${metric}`,
          `sum(${amount}) filter (where ${within(before)}) as ${metric}_before`,
        ]
      : [`sum(${amount}) as ${metric}`];
  const by = (columns: readonly string[]) => (columns.length > 0 ? `\ngroup by ${columns.join(", ")}` : "");
  const windows = before && isCompared ? [period, before] : [period];
  return {
    groups: `select ${[...group, ...sums].join(",\n  ")}\n${where(windows)}${by(group)}${group.length > 0 ? `\norder by ${metric} desc nulls last` : ""}`,
    days: `select ${["usage_date", ...group, `sum(${amount}) as ${metric}`].join(", ")}\n${where([period])}${by(["usage_date", ...group])}\norder by usage_date, ${metric} desc nulls last`,
  };
}

/** The view with the rows of a question, the column with their group, and the conditions beside the days. */
export function sourceOf(question: Question, scope: Scope) {
  const { view, column, conditions } = isCost(question.metric)
    ? costSource(question, scope)
    : usageSource(question, scope);
  return {
    view,
    column,
    conditions: [...conditions, ...projectConditions(scope), ...groupConditions(question, column)],
  };
}

export function projectConditions({ projectIds }: Pick<Scope, "projectIds">): readonly string[] {
  return projectIds === undefined ? [] : [`project_id in (${projectIds.map(literal).join(", ") || "null"})`];
}

export function groupConditions({ group }: Question, column: string): readonly string[] {
  if (group === undefined) return [];
  return [group.value === null ? `${column} is null` : `${column} = ${literal(group.value)}`];
}

function usageSource({ grouping }: Question, { filter }: Scope) {
  if (filter === undefined) return { view: `bi.usage_${viewOf(grouping)}`, column: columnOf(grouping), conditions: [] };
  const isValue = !["none", "accessor", "project"].includes(grouping);
  return {
    view: grouping === "accessor" ? FILTERED_BY_KEY : "bi.usage_filtered",
    column: isValue ? "group_value" : columnOf(grouping),
    conditions: [`"grouping" = ${literal(seriesGrouping(grouping))}`, `filter = ${literal(filter)}`],
  };
}

/** The grouping of the series that a split is read from. */
function seriesGrouping(split: Split): Exclude<Split, "project"> {
  return split === "project" ? "none" : split;
}

/** Amounts of different currencies are never added up. */
function costSource({ metric, grouping }: Question, { filter, currency = "" }: Scope) {
  const inCurrency = `currency = ${literal(currency)}`;
  const column = splitsOf(metric).includes(grouping) ? columnOf(grouping) : "null::text";
  if (metric === "estimated_cost") return { view: "bi.cost_estimated", column, conditions: [inCurrency] };
  const filtered = filter === undefined ? [] : [`filter = ${literal(filter)}`];
  return {
    view: filter === undefined ? "bi.cost_by_group" : "bi.cost_filtered",
    column,
    conditions: [`"grouping" = ${literal(seriesGrouping(grouping))}`, ...filtered, inCurrency],
  };
}

/** Filtered usage in the form in which bi.usage_by_key has all usage. */
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

function columnOf(split: Split): string {
  return COLUMNS[split] ?? split;
}

const VIEWS: Readonly<Partial<Record<Split, string>>> = {
  none: "total",
  accessor: "by_key",
  line_item: "total",
  project: "total",
};

function viewOf(split: Split): string {
  return VIEWS[split] ?? `by_${split}`;
}

export function within({ start, end }: Window): string {
  return `usage_date between date ${literal(start)} and date ${literal(end)}`;
}

export function sourceName({ metric }: Question): string {
  return metric === "billed_cost" ? "'billing'" : "'usage'";
}

/** Prices are for models. */
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
    `source = ${sourceName(question)} and ${groupingCondition(question)} and ${filterCondition(question, scope)}`,
    ...projectConditions(scope),
    `(${windows.map(within).join(" or ")})`,
  ].join("\n  and ");
}

/** Groups whose amounts are all 0 or NULL have no rank. Only a charge may be negative, as a credit is. */
function usageOf(question: Question, scope: Scope, isCompared: boolean): string {
  const { view, column, conditions } = sourceOf(question, scope);
  const selects = rangesOf(question).map(
    (
      range,
    ) => `select usage_date, ${column} as "group", sum(${isCost(question.metric) ? "amount" : question.metric}) as amount
  from ${view}
  where ${[within(range), ...conditions].join("\n    and ")}
  group by 1, 2`,
  );
  const note = question.metric === "billed_cost" ? "-- A charge without an amount (NULL) is in no sum.\n  " : "";
  return `with day_amount as materialized (
  ${note}${selects.join("\n  union all\n  ")}
), group_amount as (
  select "group", ${sumsOf(question)}
  from day_amount
  group by "group"
  having sum(abs(amount)) > 0
), ranked as materialized (
  select *, row_number() over (
    order by ${question.sort === "change" && isCompared ? "abs(coalesce(amount, 0) - coalesce(amount_before, 0)) desc, " : ""}amount desc nulls last, amount_before desc nulls last, "group" collate "C" nulls last
  ) as rank
  from group_amount
)`;
}

/**
 * The days to read, none of them twice. Windows without a gap are one range, and others are read one by one: with "or" Postgres would
 * read all days of a series.
 */
function rangesOf({ period, before }: Question): readonly Window[] {
  if (!before) return [period];
  return before.end >= addDays(period.start, -1) ? [{ start: before.start, end: period.end }] : [before, period];
}

function sumsOf({ period, before }: Question): string {
  const sumOf = (window: Window) => `sum(amount) filter (where ${within(window)})`;
  return `${sumOf(period)} as amount,
    ${before ? sumOf(before) : "null::numeric"} as amount_before`;
}

function groupsOf(question: Question, isCompared: boolean): string {
  const { grouping, limit } = question;
  const change = isCompared ? "coalesce(amount, 0) - coalesce(amount_before, 0)" : "null::numeric";
  const sumOf = (amount: string) => (addsUp(grouping) ? `sum(${amount})` : "null::numeric");
  const total = `
union all
select 'total', null, null, amount, amount_before, ${change}, groups from (
  select ${sumsOf(question)},
    (select count(*) from ranked) as groups
  from day_amount
) total`;
  return `select 'group' as part, rank, "group", amount, amount_before, ${change} as change, 1 as groups
from ranked where rank <= ${limit}
union all
select 'other', null, null, amount, amount_before, ${addsUp(grouping) ? change : "null"}, groups from (
  select ${sumOf("amount")} as amount, ${sumOf("amount_before")} as amount_before, count(*) as groups
  from ranked where rank > ${limit} having count(*) > 0
) other${addsUp(grouping) ? total : ""}`;
}

/** The groups that are drawn. Where groups add up also all others, and the total of each day of the compared period. */
function daysOf({ grouping, period, before, limit }: Question): string {
  const isDrawn = `rank <= ${Math.min(DRAWN_MAX, limit)}`;
  const compared =
    before && addsUp(grouping)
      ? `
union all
select usage_date, 'before', null, null, sum(amount)
from day_amount where ${within(before)}
group by usage_date`
      : "";
  return `select usage_date, case when ${isDrawn} then 'group' else 'other' end as part,
  case when ${isDrawn} then rank end as rank, case when ${isDrawn} then ranked."group" end as "group", sum(day_amount.amount) as amount
-- As arrays: NULL equals NULL in an array.
from day_amount join ranked on array[ranked."group"] = array[day_amount."group"]
where ${within(period)}${addsUp(grouping) ? "" : ` and ${isDrawn}`}
group by 1, 2, 3, 4${compared}`;
}

/**
 * The sums of every metric of usage in the two periods, in one row: `hours` and `hours_before`. They are added up by day first: without that
 * Postgres reads the whole table (210 ms in place of 4, with a million rows).
 */
export function figuresSql(question: Question, scope: Scope): string {
  const { view, conditions } = sourceOf(question, scope);
  const { period, before } = question;
  const ofDay = METRICS.map((metric) => `sum(${metric}) as ${metric}`).join(", ");
  const selects = rangesOf(question).map(
    (range) =>
      `select usage_date, ${ofDay} from ${view} where ${[within(range), ...conditions].join(" and ")} group by 1`,
  );
  const sums = (window: Window, end: string) =>
    METRICS.map((metric) => `sum(${metric}) filter (where ${within(window)}) as ${metric}${end}`);
  return `with day_amount as materialized (
  ${selects.join("\n  union all\n  ")}
)
select ${[...sums(period, ""), ...(before ? sums(before, "_before") : [])].join(",\n  ")}
from day_amount`;
}
