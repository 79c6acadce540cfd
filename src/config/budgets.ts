// The schema of budgets, and the check that an export reads what each budget is made of. Pure.

import { z } from "zod";
import { BUDGET_PERIODS, BUDGET_SCOPES, type Budget, SCOPE_GROUPINGS } from "../usage/budgets.ts";
import { METRICS } from "../usage/metrics.ts";
import type { ExportJob } from "../usage/plan.ts";
import { filterKey, NO_CONDITIONS, type Project } from "../usage/series.ts";
import { Currency, Day, Decimal, isGreater } from "./amounts.ts";
import { Name, object, text } from "./fields.ts";
import type { ConfigIssue } from "./messages.ts";

const SCOPED = BUDGET_SCOPES.filter((scope) => scope !== "all");

const WrittenBudget = object({
  name: Name.describe("The budget's name, as in alerts and in bi.budgets."),
  project: Name.exactOptional().describe(
    "The name of the project. Left out: all projects that an export reads, together.",
  ),
  key: text(256)
    .exactOptional()
    .describe("Only usage of this key: the name of a rotation, whichever of its keys is used, or an accessor."),
  tag: text(256).exactOptional().describe("Only usage with this tag, whatever other tags it has."),
  model: text(256).exactOptional().describe("Only usage of this model, also together with others."),
  metric: z.enum([...METRICS, "cost"]).describe('What is counted: a metric, or "cost".'),
  currency: Currency.exactOptional().describe("The currency of a cost, an ISO 4217 code."),
  amount: Decimal.describe("How much may be used in a period, as a number or as text; every digit counts."),
  period: z.enum(BUDGET_PERIODS).default("month").describe("A calendar month or a day, in UTC."),
  thresholds: z
    .array(Decimal)
    .min(1)
    .prefault([80, 100])
    .describe("At how many percent of the amount there is an alert, in rising order."),
  from: Day.exactOptional().describe("The first day it is for. Left out: the period in which it is first stored."),
});

type WrittenBudget = z.output<typeof WrittenBudget>;

const BudgetEntry = WrittenBudget.superRefine((budget, context) => {
  for (const { path, message } of problemsOf(budget)) context.addIssue({ code: "custom", path: [...path], message });
});

export const BudgetList = z.array(BudgetEntry);

/** What one field of a budget says about another. */
function problemsOf(budget: WrittenBudget): ConfigIssue[] {
  const { metric, currency, amount, thresholds } = budget;
  const issues: ConfigIssue[] = [];
  const scopes = SCOPED.filter((scope) => budget[scope] !== undefined);
  for (const scope of scopes.slice(1)) {
    issues.push({
      path: [scope],
      message: `expected one of ${SCOPED.join(", ")}; this budget has "${scopes[0]}", too`,
    });
  }
  if (metric === "cost" && currency === undefined) {
    issues.push({ path: ["currency"], message: 'missing; expected the currency of the cost, such as "USD"' });
  }
  if (metric !== "cost" && currency !== undefined) {
    issues.push({ path: ["currency"], message: `expected no currency: ${metric} has none` });
  }
  if (!isGreater(amount, "0")) issues.push({ path: ["amount"], message: "expected more than 0; got 0" });
  for (const [i, threshold] of thresholds.entries()) {
    const before = thresholds[i - 1] ?? "0";
    if (!isGreater(threshold, before)) {
      issues.push({
        path: ["thresholds", i],
        message: `expected more than ${before}, each threshold above the one before; got ${threshold}`,
      });
    }
  }
  return issues;
}

type Readers = {
  readonly projects: readonly Project[];
  readonly exports: readonly ExportJob[];
  /** There is a price book. */
  readonly hasPrices: boolean;
};

/** The budgets as the program uses them, and what is wrong with them. Called once everything else in the configuration is right. */
export function resolveBudgets(
  written: readonly WrittenBudget[],
  readers: Readers,
): { readonly budgets: readonly Budget[]; readonly issues: readonly ConfigIssue[] } {
  const projects = readers.projects.map(({ id, name }) => ({ id, name }));
  const budgets = written.map(({ key, tag, model, project, currency, from, ...rest }): Budget => {
    const values = { key, tag, model };
    const scope = SCOPED.find((one) => values[one] !== undefined) ?? "all";
    return {
      ...{ ...rest, project, currency, from, scope, scopeValue: scope === "all" ? undefined : values[scope] },
      projects:
        project === undefined
          ? projects.filter(({ id }) => readers.exports.some((job) => job.projects.some((one) => one.id === id)))
          : projects.filter(({ name }) => name === project),
    };
  });
  const issues = budgets.flatMap((budget, i) =>
    unreadIssues(budget, readers).map((message) => ({ path: ["budgets", i], message })),
  );
  return { budgets, issues };
}

/** A budget whose usage no export reads would never be used up, whatever happens. */
function unreadIssues({ scope, metric, projects }: Budget, { exports, hasPrices }: Readers): string[] {
  if (projects.length === 0) return ["no export reads any project, so nothing is counted: add an export"];
  if (metric === "cost" && (scope === "key" || scope === "tag")) {
    return [
      `the cost of a ${scope} can't be told from usage, whose prices are by model: leave out "${scope}", or choose another metric`,
    ];
  }
  if (metric === "cost" && !hasPrices) {
    return ['nothing says what usage costs: add "prices"'];
  }
  const grouping = metric === "cost" ? "model" : SCOPE_GROUPINGS[scope];
  const unread = projects.filter(({ id }) => !exports.some((job) => reads(job, id, grouping)));
  return unread.map(({ name }) => {
    const index = exports.findIndex((job) => job.projects.some((one) => one.name === name));
    const place = index === -1 ? `an export that has ${JSON.stringify(name)} in its "projects"` : `exports[${index}]`;
    const filter =
      index === -1 || hasUnfiltered(exports[index]) ? "" : ', and a filter without conditions to its "filters"';
    return `no export reads ${name} by the grouping ${JSON.stringify(grouping)} without conditions, of which this budget is made: add ${JSON.stringify(grouping)} to the "groupings" of ${place}${filter}`;
  });
}

function reads(job: ExportJob, projectId: string, grouping: ExportJob["groupings"][number]): boolean {
  return job.projects.some(({ id }) => id === projectId) && job.groupings.includes(grouping) && hasUnfiltered(job);
}

function hasUnfiltered(job: ExportJob | undefined): boolean {
  return job?.filters.some((filter) => filterKey(filter) === NO_CONDITIONS) ?? false;
}
