// What each project or API key used in a month and what that cost, for passing costs on. The amounts of a metric add up to its total exactly.

import { METRICS } from "../usage/metrics.ts";
import { isWhole } from "./answer.ts";
import { type AskedMetric, COSTS, isCost, type Question, type Split, splitsOf } from "./question.ts";
import { type Query, readBasis } from "./scope.ts";
import { literal, sourceOf, within } from "./sql.ts";

/** Tags are no such split: a request may have several, so their amounts do not add up. */
export const CHARGED_BY = ["project", "accessor"] as const;

export type Charge = {
  readonly projectId: string;
  readonly project: string;
  /** The API key; null for no value, and where the metric is known by project only. */
  readonly group: string | null;
  readonly metric: AskedMetric;
  readonly currency: string | null;
  readonly amount: string;
  readonly total: string;
  /** Whether every day of the month was read of every project. */
  readonly isComplete: boolean;
};

type AskedCharges = Pick<Question, "projects" | "period"> & { readonly by: (typeof CHARGED_BY)[number] };

/** Throws InvalidQuestion if there is no such project. */
export async function chargeback(query: Query, { by, ...asked }: AskedCharges): Promise<readonly Charge[]> {
  const charges = [...(await chargesOf(query, asked, METRICS, by, undefined))];
  for (const metric of COSTS) {
    const grouping = splitsOf(metric).includes(by) ? by : "project";
    const { scope } = await readBasis(query, questionOf(asked, metric, grouping, undefined));
    for (const currency of metric === "billed_cost" ? [undefined] : scope.available.currencies)
      charges.push(...(await chargesOf(query, asked, [metric], grouping, currency)));
  }
  return charges;
}

/** The charges by the grouping; by project if the metrics are not exported by the grouping. */
async function chargesOf(
  query: Query,
  asked: Omit<AskedCharges, "by">,
  metrics: readonly AskedMetric[],
  grouping: Split,
  currency: string | undefined,
): Promise<readonly Charge[]> {
  const [metric = "hours"] = metrics;
  const question = questionOf(asked, metric, grouping, currency);
  const basis = await readBasis(query, question);
  const { scope } = basis;
  if (scope.projectCount === 0)
    return grouping === "project" ? [] : chargesOf(query, asked, metrics, "project", currency);
  const { view, column, conditions } = sourceOf(question, scope);
  const group = grouping === "project" ? "null::text" : column;
  const sums = metrics.map((one) => `sum(${isCost(one) ? "amount" : one}) as ${one}`);
  const rows = await query<Omit<Charge, "currency" | "isComplete">>(`
select project_id as "projectId", project, "group", metric, trim_scale(amount)::text as amount, trim_scale(total)::text as total
from (
  select project_id, "group", metric, place, amount, sum(amount) over (partition by metric) as total
  from (
    select project_id, ${group} as "group", ${sums.join(", ")} from ${view}
    where ${[within(asked.period), ...conditions].join(" and ")} group by 1, 2
  ) used
  cross join lateral (values ${metrics.map((one, i) => `(${i}, ${literal(one)}, ${one})`).join(", ")}) as sums (place, metric, amount)
) charged
join (select project_id, (array_agg(project order by active desc, project))[1] as project from bi.series group by project_id) named
  using (project_id)
where amount <> 0
order by place, project, project_id, charged.amount desc`);
  return rows.map((row) => ({ ...row, currency: scope.currency ?? null, isComplete: isWhole(basis) }));
}

function questionOf(
  { period, projects }: Omit<AskedCharges, "by">,
  metric: AskedMetric,
  grouping: Split,
  currency: string | undefined,
): Question {
  const none = { before: undefined, filter: undefined, group: undefined, limit: 1, sort: "amount" } as const;
  return { ...none, period, projects, metric, grouping, currency };
}
