// The amounts of usage or cost that a question asks for, from the views of schema bi.

import { plainDecimal } from "../decimal.ts";
import { TOTAL_GROUPINGS } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { type Answer, answerOf, type Basis, lackingDays, type UsageRow } from "./answer.ts";
import { isCost, type Question, type Split } from "./question.ts";
import { type Query, readCoveredDays, readScope, readUnpriced } from "./scope.ts";
import { dayAmountSql, figuresSql, literal, usageSql } from "./sql.ts";

/** Throws InvalidQuestion if there is no such project or filter. */
export async function readBasis(query: Query, question: Question): Promise<Basis> {
  const scope = await readScope(query, question);
  const covered = await readCoveredDays(query, question, scope);
  const lacking = lackingDays(question, covered, scope.activeCount);
  const isWhole = Object.values(lacking).every((days) => days.length === 0);
  return { scope, covered, lacking, isCompared: question.before !== undefined && isWhole && scope.endedCount === 0 };
}

/**
 * `question` asks for the total. Returns the grouping to read it by, with what is known of the series: none, or if the projects are exported only
 * by other groupings, one whose groups add up to the total. `available` is every split that is exported.
 */
export async function readTotalSplit(query: Query, question: Question) {
  const basis = await readBasis(query, question);
  const available = basis.scope.groupings;
  const replacement = basis.scope.projectCount > 0 ? undefined : TOTAL_GROUPINGS.find((one) => available.includes(one));
  if (replacement === undefined || replacement === "none") return { totalSplit: "none", available, basis } as const;
  return { totalSplit: replacement, available, basis: await readBasis(query, { ...question, grouping: replacement }) };
}

/** `countsUnpriced` is false if another answer, the total, already says how many models have no price. Throws InvalidQuestion as readBasis does. */
export async function amounts(query: Query, question: Question, known?: Basis, countsUnpriced = true): Promise<Answer> {
  const basis = known ?? (await readBasis(query, question));
  const { scope } = basis;
  const isChecked = question.metric === "estimated_cost" && scope.projectCount > 0 && countsUnpriced;
  const rows =
    isCost(question.metric) && scope.projectCount === 0
      ? []
      : await query<UsageRow>(usageSql(question, scope, basis.isCompared));
  return answerOf({
    ...{ question, ...basis, rows, sql: dayAmountSql(question, scope) },
    labels: await readLabels(query, question, rows),
    unpriced: isChecked ? await readUnpriced(query, question, scope) : { models: 0, metrics: [] },
  });
}

export type Figure = {
  readonly metric: (typeof METRICS)[number];
  readonly amount: string;
  readonly before: string | null;
};

/** The total of each metric of usage that the service sent. `question` asks for a split that adds up to the total. */
export async function figures(query: Query, question: Question, { scope }: Basis): Promise<readonly Figure[]> {
  const [sums = {}] = await query<Record<string, string | null>>(figuresSql(question, scope));
  return METRICS.flatMap((metric) => {
    const [amount, before] = [sums[metric], sums[`${metric}_before`]];
    return amount ? [{ metric, amount: plainDecimal(amount), before: before ? plainDecimal(before) : null }] : [];
  });
}

/** What API keys, projects and line items are called on pages, by their identifiers. */
async function readLabels(query: Query, { grouping }: Question, rows: readonly UsageRow[]) {
  const ids = rows.flatMap(({ part, group }) => (part === "group" && group !== null ? [literal(group)] : []));
  const labels = labelsSql(grouping, ids.join(", "));
  if (labels === undefined || ids.length === 0) return new Map<string | null, string>();
  const named = await query<{ id: string; label: string }>(labels);
  return new Map<string | null, string>(named.map(({ id, label }) => [id, label]));
}

/** The label of a key is its comment. Keys of several projects with the same comment also have the name of their project. */
function labelsSql(grouping: Split, ids: string): string | undefined {
  switch (grouping) {
    case "line_item":
      return `select line_item as id, label from bi.line_items where line_item in (${ids})`;
    case "project":
      return `
select project_id as id, (array_agg(project order by active desc, project))[1] as label from bi.series
where project_id in (${ids}) group by project_id`;
    case "accessor":
      return `
with key as (
  select api_key_id, max(comment) as comment, max(project_id) as project_id from bi.listed_keys
  where comment <> '' and api_key_id in (${ids}) group by api_key_id
), shared as (
  select comment from bi.listed_keys
  where comment in (select comment from key) group by comment having min(project_id) <> max(project_id)
)
select api_key_id as id, case when comment not in (select comment from shared) then comment else comment || ' (' || (
  select project from bi.series s
  where s.source in ('usage', 'billing') and s.project_id = key.project_id order by active desc, project limit 1
) || ')' end as label
from key`;
    default:
      return undefined;
  }
}
