// What each project or API key used in a period and what that cost, for passing costs on. The amounts of a metric add up to its total exactly.

import { METRICS } from "../usage/metrics.ts";
import { isWhole } from "./answer.ts";
import {
  type AskedMetric,
  COSTS,
  isCost,
  literal,
  type Question,
  splitsOf,
  viewAndConditions,
  within,
} from "./question.ts";
import { type Query, readBasis, readCurrencies } from "./scope.ts";

/** What charges can be split by. Tags can't: a request may have several, so their amounts do not add up. */
export const CHARGED_BY = ["project", "accessor"] as const;

export type Charge = {
  readonly projectId: string;
  readonly project: string;
  /** The API key, or the rotation that made it; null for charges by project, and for usage without a key. */
  readonly group: string | null;
  readonly metric: AskedMetric;
  readonly currency: string | null;
  readonly amount: string;
  /** The sum of the amounts of all charges with this metric and currency. */
  readonly total: string;
  /** Whether every day of the period is complete, and no project is left out or is no longer read. */
  readonly isComplete: boolean;
};

type ChargesQuestion = Pick<Question, "projects" | "period"> & { readonly by: (typeof CHARGED_BY)[number] };

/** Throws InvalidQuestion if there is no such project. */
export async function chargeback(query: Query, { by, period, projects }: ChargesQuestion): Promise<readonly Charge[]> {
  // A question must have a limit and an order, but charges list every group.
  const asked = { period, projects, limit: 1, sort: "amount" } as const;
  const charges = await chargesOf(query, METRICS, { ...asked, metric: "hours", grouping: by });
  for (const metric of COSTS) {
    const question = { ...asked, metric, grouping: splitsOf(metric).includes(by) ? by : "project" };
    for (const currency of metric === "billed_cost" ? ["USD"] : await readCurrencies(query))
      charges.push(...(await chargesOf(query, [metric], { ...question, currency })));
  }
  return charges;
}

/** The charges by the question's grouping, or by project if no series has it. All metrics must have the same series as `question.metric`. */
async function chargesOf(query: Query, metrics: readonly AskedMetric[], question: Question): Promise<Charge[]> {
  const { period, grouping } = question;
  const basis = await readBasis(query, question);
  const { scope } = basis;
  if (scope.projectCount === 0)
    return grouping === "project" ? [] : chargesOf(query, metrics, { ...question, grouping: "project" });
  const { view, column, conditions } = viewAndConditions(question, scope);
  const group = grouping === "project" ? "null::text" : column;
  const sums = metrics.map((metric) => `sum(${isCost(metric) ? "amount" : metric}) as ${metric}`);
  const rows = await query<Omit<Charge, "currency" | "isComplete">>(`
select project_id as "projectId", project, "group", metric, trim_scale(amount)::text as amount,
  trim_scale(sum(amount) over (partition by metric))::text as total
from (
  select project_id, ${group} as "group", ${sums.join(", ")} from ${view}
  where ${[within(period), ...conditions].join(" and ")} group by 1, 2
) used
cross join lateral (values ${metrics.map((metric, i) => `(${i}, ${literal(metric)}, ${metric})`).join(", ")}) as charged (position, metric, amount)
join (select project_id, max(project) as project from bi.series group by project_id) named using (project_id)
where amount <> 0
order by position, project, project_id, charged.amount desc`);
  return rows.map((row) => ({ ...row, currency: scope.currency ?? null, isComplete: isWhole(basis) }));
}
