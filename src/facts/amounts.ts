// The amounts of usage or cost that a question asks for, from the views of schema bi.

import { sumOf } from "../decimal.ts";
import { addDays, type Day, type Window } from "../usage/days.ts";
import { TOTAL_GROUPINGS } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { type Answer, answerOf, type Basis, DRAWN_MAX, type UsageRow } from "./answer.ts";
import { isCost, literal, type Question, type Scope, type Split, viewAndConditions, within } from "./question.ts";
import { type Query, readBasis, readCurrencies, readUnpriced } from "./scope.ts";

/** `totalGrouping`: "none" or, if not exported, a grouping that adds up to it; `basis`: its series, and the states of days from `since` on. */
export async function readTotalBasis(query: Query, question: Question, since?: Day) {
  const basis = await readBasis(query, question, since);
  const available = basis.scope.available.groupings;
  const substitute = TOTAL_GROUPINGS.find((one) => available.includes(one)) ?? "none";
  const totalGrouping = basis.scope.projectCount > 0 ? "none" : substitute;
  if (totalGrouping === "none") return { totalGrouping, available, basis };
  return { totalGrouping, available, basis: await readBasis(query, { ...question, grouping: totalGrouping }, since) };
}

/** The question about the billed cost if all projects have it, else about the estimate, else about the billed cost of some, with its basis. */
export async function chooseCost(query: Query, asked: Omit<Question, "grouping">, projectCount: number, since?: Day) {
  const totalQuestion = { ...asked, grouping: "none" } as const;
  const { totalGrouping, basis } = await readTotalBasis(query, { ...totalQuestion, metric: "billed_cost" }, since);
  const billedCount = basis.scope.projectCount;
  const billed = { question: { ...asked, metric: "billed_cost", grouping: totalGrouping }, basis } as const;
  if (billedCount > 0 && billedCount >= projectCount) return billed;
  const question = { ...totalQuestion, metric: "estimated_cost" } as const;
  const isPriced = (await readCurrencies(query, question.currency)).length > 0;
  const estimated = isPriced && { question, basis: await readBasis(query, question, since) };
  if (estimated && estimated.basis.scope.projectCount > 0) return estimated;
  return billedCount > 0 ? billed : undefined;
}

/** The question about the cost, if one is known; otherwise the question itself. What is billed is not known by model. */
export async function preferCost(query: Query, asked: Question): Promise<Question> {
  const { basis } = await readTotalBasis(query, { ...asked, grouping: "none" });
  const cost = await chooseCost(query, asked, basis.scope.projectCount);
  if (!cost) return asked;
  const { projectCount, available } = cost.basis.scope;
  const billedSplit = projectCount > 1 ? "project" : "line_item";
  const split = cost.question.metric === "estimated_cost" ? "model" : billedSplit;
  return { ...asked, ...cost.question, grouping: available.groupings.includes(split) ? split : "none" };
}

/** With `countsUnpriced` false, models without a price are not looked for. `sums`: the total by day, if it is already known. */
export async function readAnswer(
  query: Query,
  question: Question,
  knownBasis?: Basis,
  { countsUnpriced = true, sums }: { readonly countsUnpriced?: boolean; readonly sums?: DaySums | undefined } = {},
): Promise<Answer> {
  const basis = knownBasis ?? (await readBasis(query, question));
  const { scope } = basis;
  const mayBeUnpriced = countsUnpriced && question.metric === "estimated_cost" && scope.projectCount > 0;
  const rows = await readRows(query, question, basis, sums);
  return answerOf({
    ...basis,
    question,
    rows,
    sql: dayAmountSql(question, scope),
    labels: await readLabels(query, question, rows),
    unpriced: mayBeUnpriced ? await readUnpriced(query, question, scope) : { unpricedModels: 0, unpricedMetrics: [] },
  });
}

async function readRows(query: Query, question: Question, { scope, isCompared }: Basis, sums?: DaySums) {
  if (isCost(question.metric) && scope.projectCount === 0) return [];
  if (sums && question.grouping === "none") return totalRows(question, sums);
  return query<UsageRow>(usageSql(question, scope, isCompared));
}

/** Selects a UsageRow for each listed group, the others together, the total, each day, and each day of the drawn groups. */
function usageSql(question: Question, scope: Scope, isCompared: boolean): string {
  const { grouping, period, before, limit, sort } = question;
  const sumSql = (window: Window) => `sum(amount) filter (where ${within(window)})`;
  const sums = `${sumSql(period)} as amount, ${before ? sumSql(before) : "null::numeric"} as amount_before`;
  const order = [
    ...(sort === "change" && isCompared ? ["abs(coalesce(amount, 0) - coalesce(amount_before, 0)) desc"] : []),
    ...["amount desc nulls last", "amount_before desc nulls last", '"group" collate "C" nulls last'],
  ];
  // Most API keys have one row a day, so their rows are not summed by day first: that would take longer than the rest of the query.
  return `with day_amount as materialized (
${dayAmountSql(question, scope, grouping !== "accessor")}
), ranked as (
  select *, row_number() over (order by ${order.join(", ")}) as rank, count(*) over () as groups
  from (select "group", ${sums} from day_amount group by "group" having bool_or(amount <> 0)) group_amount
), by_day as (
  -- array_position instead of a join, because NULL is a group, too.
  select usage_date, array_position(
      (select array_agg("group" order by rank) from ranked where rank <= ${Math.min(DRAWN_MAX, limit)}), "group"
    )::bigint as rank, sum(amount) as amount
  from day_amount group by 1, 2
)
select 'group' as part, case when rank <= ${limit} then rank end as rank, case when rank <= ${limit} then "group" end as "group",
  null as usage_date, sum(amount) as amount, sum(amount_before) as amount_before, max(groups) as groups
from ranked group by 2, 3
union all
select case when grouping(rank) = 0 then 'group of day' when grouping(usage_date) = 0 then 'day' else 'total' end,
  rank, null, usage_date, ${sums}, null
from by_day group by grouping sets ((rank, usage_date), (usage_date), ())
order by part, rank`;
}

/** Selects the amounts of every group by day. The pages show it for people to copy. Only estimates have several rows a day for a project. */
function dayAmountSql(question: Question, scope: Scope, isSummed = true): string {
  const { view, column, conditions } = viewAndConditions(question, scope);
  const { grouping, metric, period, before } = question;
  const amount = amountColumn(question);
  const hasOneRowADay = grouping === "project" && metric !== "estimated_cost";
  const [sum, groupBy] = isSummed && !hasOneRowADay ? [`sum(${amount})`, "\ngroup by 1, 2"] : [amount, ""];
  // If there is a gap between the periods, each is read by itself: with "or" Postgres would read all days of a series.
  const isOneRange = before === undefined || before.end >= addDays(period.start, -1);
  const ranges = isOneRange ? [{ start: before?.start ?? period.start, end: period.end }] : [before, period];
  return ranges
    .map(
      (range) => `select usage_date, ${column} as "group", ${sum} as amount
from ${view}
where ${[within(range), ...conditions].join("\n  and ")}${groupBy}`,
    )
    .join("\nunion all\n");
}

type Figure = {
  readonly metric: (typeof METRICS)[number];
  readonly amount: string;
  readonly before: string | null;
};

/** The total of each metric of usage that the service sent. */
export function figures(sums: DaySums, { period, before }: Pick<Question, "period" | "before">): readonly Figure[] {
  return METRICS.flatMap((metric) => {
    const amount = sumWithin(sums, metric, period);
    return amount === null ? [] : { metric, amount, before: sumWithin(sums, metric, before) };
  });
}

/** For each day, the sum of every metric of usage, or of the cost in `amount`. */
export type DaySums = readonly (Readonly<Record<string, string | null>> & { readonly usage_date: Day })[];

export function amountColumn({ metric }: Question): string {
  return isCost(metric) ? "amount" : metric;
}

/** Reads the sums of all groups by day. The question's groups must add up to the total. */
export function readDaySums(query: Query, question: Question, scope: Scope, days: Window): Promise<DaySums> {
  const { view, conditions } = viewAndConditions(question, scope);
  const sums = (isCost(question.metric) ? ["amount"] : METRICS).map((column) => `sum(${column}) as ${column}`);
  return query(`
select usage_date, ${sums.join(", ")} from ${view} where ${[within(days), ...conditions].join(" and ")} group by usage_date`);
}

function sumWithin(sums: DaySums, column: string, window: Window | undefined): string | null {
  if (!window) return null;
  const known = sums.filter(({ usage_date: day }) => day >= window.start && day <= window.end);
  const amounts = known.flatMap(({ [column]: sum }) => sum ?? []);
  return amounts.length > 0 ? sumOf(...amounts) : null;
}

/** Makes the rows that usageSql would select for a question about the total. */
function totalRows(question: Question, sums: DaySums): readonly UsageRow[] {
  const column = amountColumn(question);
  const rowOf = (usage_date: Day | null, days: DaySums) => ({
    group: null,
    groups: null,
    usage_date,
    amount: sumWithin(days, column, question.period),
    amount_before: sumWithin(days, column, question.before),
  });
  const total = rowOf(null, sums);
  const days = sums.map((one) => rowOf(one.usage_date, [one]));
  const isUsed = days.some((day) => [day.amount, day.amount_before].some((amount) => (amount ?? "0") !== "0"));
  return [
    ...days.map((row) => ({ part: "day", rank: null, ...row }) as const),
    ...days.map((row) => ({ part: "group of day", rank: "1", ...row }) as const),
    ...(isUsed ? [{ part: "group", rank: "1", ...total } as const] : []),
    { part: "total", rank: null, ...total },
  ];
}

/** The names that pages show instead of the identifiers of API keys, projects and line items. */
async function readLabels(query: Query, { grouping }: Question, rows: readonly UsageRow[]) {
  const ids = rows.flatMap(({ part, group }) => (part === "group" && group !== null ? [literal(group)] : []));
  const statement = LABELS_SQL[grouping]?.(ids.join(", "));
  type LabelRow = { readonly id: string | null; readonly label: string };
  const found = statement !== undefined && ids.length > 0 ? await query<LabelRow>(statement) : [];
  return new Map(found.map(({ id, label }) => [id, label]));
}

const LABELS_SQL: Readonly<Partial<Record<Split, (ids: string) => string>>> = {
  line_item: (ids) => `select line_item as id, label from bi.line_items where line_item in (${ids})`,
  project: (ids) => `
select project_id as id, max(project) as label from bi.series
where source in ('usage', 'billing') and project_id in (${ids}) group by project_id`,
  /** A key's label is its comment; if keys of several projects have the same comment, the name of the project follows. */
  accessor: (ids) => `
with key as (
  select api_key_id, max(comment) as comment, max(project_id) as project_id from bi.listed_keys
  where comment <> '' and api_key_id in (${ids}) group by api_key_id
), shared as (
  select comment from bi.listed_keys
  where comment in (select comment from key) group by comment having min(project_id) <> max(project_id)
)
select api_key_id as id, comment || coalesce(' (' || named.project || ')', '') as label
from key left join lateral (
  select project from bi.series s
  where comment in (select comment from shared) and s.source in ('usage', 'billing') and s.project_id = key.project_id
  limit 1
) named on true`,
};
