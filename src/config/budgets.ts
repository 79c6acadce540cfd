// The schema of budgets, and the check that an export reads what each budget is made of. Pure.

import { z } from "zod";
import { BUDGET_PERIODS, BUDGET_SCOPES, type Budget, SCOPE_GROUPINGS } from "../usage/budgets.ts";
import type { Source } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import type { ExportJob } from "../usage/plan.ts";
import { filterKey, type Grouping, NO_CONDITIONS, type Project } from "../usage/series.ts";
import { Currency, Day, Decimal, isGreater, Name, object, reportingIssues, text } from "./fields.ts";
import type { ConfigIssue } from "./messages.ts";

/** The currency of billing. */
const BILLED = "USD";

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

export type WrittenBudget = z.output<typeof WrittenBudget>;

export const BudgetList = z.array(WrittenBudget.superRefine(reportingIssues(problemsOf)));

/** What one field of a budget says about another. */
function problemsOf(budget: WrittenBudget): ConfigIssue[] {
  const { metric, currency, amount, thresholds, period, from } = budget;
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
  if (period === "month" && from !== undefined && !from.endsWith("-01")) {
    issues.push({
      path: ["from"],
      message: `expected the first day of a month, as the budget is by month; got ${from}`,
    });
  }
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
  const exported = new Set(readers.exports.flatMap((job) => job.projects.map(({ id }) => id)));
  const budgets = written.map(({ key, tag, model, project, currency, from, ...rest }): Budget => {
    const values = { key, tag, model };
    const scope = SCOPED.find((one) => values[one] !== undefined) ?? "all";
    return {
      ...{ ...rest, project, currency, from, scope, scopeValue: scope === "all" ? undefined : values[scope] },
      projects:
        project === undefined
          ? projects.filter(({ id }) => exported.has(id))
          : projects.filter(({ name }) => name === project),
    };
  });
  const issues = budgets.flatMap((budget, i) =>
    unreadIssues(budget, readers).map((message) => ({ path: ["budgets", i], message })),
  );
  return { budgets, issues };
}

/** A budget whose usage no export reads would never be used up, whatever happens. */
function unreadIssues(budget: Budget, readers: Readers): string[] {
  const { scope, metric, currency, projects } = budget;
  if (projects.length === 0) return ["no export reads any project, so nothing is counted: add an export"];
  if (metric !== "cost") return unreadProjects(projects, readers, "usage", SCOPE_GROUPINGS[scope]);
  const hasBill = scope !== "model" && currency === BILLED;
  const billed = hasBill ? readProjects(readers, "billing", SCOPE_GROUPINGS[scope]) : new Set();
  const others = projects.filter(({ id }) => !billed.has(id));
  if (scope === "key" || scope === "tag") {
    if (currency !== BILLED)
      return [`the cost of a ${scope} is known from billing alone, and the service bills in ${BILLED}`];
    return unreadProjects(others, readers, "billing", SCOPE_GROUPINGS[scope]);
  }
  if (others.length === 0) return [];
  if (!readers.hasPrices && currency !== BILLED) {
    return [`nothing says what usage costs in ${currency}, as the service bills in ${BILLED}: add "prices"`];
  }
  if (!readers.hasPrices) {
    const bill = scope === "all" ? ', or an export with "source": "billing" and the grouping "none"' : "";
    return [`nothing says what usage of ${others[0]?.name} costs: add "prices"${bill}`];
  }
  return unreadProjects(others, readers, "usage", "model");
}

function unreadProjects(projects: readonly Project[], readers: Readers, source: Source, grouping: Grouping): string[] {
  const { exports } = readers;
  const read = readProjects(readers, source, grouping);
  const unread = projects.filter(({ id }) => !read.has(id));
  return unread.map(({ name }) => {
    const index = exports.findIndex((job) => job.source === source && job.projects.some((one) => one.name === name));
    const ofSource = source === "billing" ? ' and "source": "billing"' : "";
    const place =
      index === -1 ? `an export that has ${JSON.stringify(name)} in its "projects"${ofSource}` : `exports[${index}]`;
    const filter =
      index === -1 || hasUnfiltered(exports[index]) ? "" : ', and a filter without conditions to its "filters"';
    return `no export reads the ${source} of ${name} by the grouping ${JSON.stringify(grouping)} without conditions, of which this budget is made: add ${JSON.stringify(grouping)} to the "groupings" of ${place}${filter}`;
  });
}

/** The ids of the projects of which an export reads the source by the grouping without conditions. */
function readProjects({ exports }: Readers, source: Source, grouping: Grouping): ReadonlySet<string> {
  const jobs = exports.filter((job) => job.source === source && job.groupings.includes(grouping) && hasUnfiltered(job));
  return new Set(jobs.flatMap(({ projects }) => projects.map(({ id }) => id)));
}

function hasUnfiltered(job: ExportJob | undefined): boolean {
  return job?.filters.some((filter) => filterKey(filter) === NO_CONDITIONS) ?? false;
}
