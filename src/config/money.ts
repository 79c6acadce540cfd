// The schemas of prices and budgets, and the rules for their fields. Pure.

import { z } from "zod";
import type { Source } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { BUDGET_PERIODS, BUDGET_SCOPES, type BudgetScope, PRICED_TIMES, SCOPE_GROUPINGS } from "../usage/money.ts";
import type { ExportJob } from "../usage/plan.ts";
import { filterKey, type Grouping, NO_CONDITIONS, type Project } from "../usage/series.ts";
import { Currency, Day, Decimal, Name, object, text, withRules } from "./fields.ts";
import type { ConfigIssue, Path } from "./json.ts";
import { quoteAll } from "./messages.ts";

const MODEL = 'a model, the beginning of models such as "nova-*", or "*" for any usage';

const POWERS_OF_TEN = Array.from({ length: 13 }, (_, n) => 10 ** n);

const Per = z
  .union([z.enum(PRICED_TIMES), z.literal(POWERS_OF_TEN)], {
    error: `1, 10, 100 and so on, or one of ${quoteAll(PRICED_TIMES)}`,
  })
  .transform(String);

const Tier = object({
  above: Decimal.describe("The quantity of the month after which the tier begins."),
  price: Decimal.describe("The price of what is above it."),
});

const WrittenPrice = object({
  metric: z.enum(METRICS).describe(`The metric that is paid for: ${METRICS.join(", ")}.`),
  model: text(256)
    // A set of models written as a list would be priced twice: by that text and by each beginning that all of them have.
    .regex(/^(?!\[)[^*]*\*?$/, MODEL)
    .describe('A name, a beginning such as "nova-*", or "*" for any usage.'),
  endpoint: text(256).exactOptional().describe("Only usage of this endpoint."),
  method: text(256).exactOptional().describe("Only usage by this processing method."),
  deployment: text(256).exactOptional().describe("Only usage of this deployment type."),
  currency: Currency.describe("An ISO 4217 code."),
  price: Decimal.nullable().describe("The price, as a number or as text; null: these days have no price."),
  per: Per.prefault(1).describe('How much the price is for: a power of ten, or "hour", "minute" or "second".'),
  from: Day.describe("The first day the price is valid for, in UTC."),
  until: Day.exactOptional().describe("The last day. Left out: until the next price of the same usage."),
  tiers: z.array(Tier).prefault([]).describe("Other prices for what a calendar month has above a quantity."),
});

/** Decimal numbers are exact text. */
export type Price = Readonly<z.output<typeof WrittenPrice>>;

function priceProblems({ metric, per, price, from, until, tiers }: Price): ConfigIssue[] {
  const bounds = tiers.map(({ above }, i) => ({ amount: above, path: ["tiers", i, "above"] }));
  const issues = risingIssues(bounds, "tier");
  const add = (field: string, message: string) => void issues.push({ path: [field], message });
  if (PRICED_TIMES.includes(per) && !metric.endsWith("hours")) {
    add("per", `expected a power of ten, as ${metric} is not measured in time; got "${per}"`);
  }
  if (until !== undefined && until < from) {
    add("until", `expected a day not before "from", which is ${from}; got "${until}"`);
  }
  if (price === null && tiers.length > 0) add("tiers", 'expected no tiers where "price" is null');
  return issues;
}

function risingIssues(amounts: readonly { amount: string; path: Path }[], what: string): ConfigIssue[] {
  return amounts.flatMap(({ amount, path }, i) => {
    const before = amounts[i - 1]?.amount ?? "0";
    if (Number(amount) > Number(before)) return [];
    return [{ path, message: `expected more than ${before}, each ${what} above the one before; got ${amount}` }];
  });
}

export const PriceList = z.array(withRules(WrittenPrice, priceProblems));

const BILLED = "USD";

const SCOPED = BUDGET_SCOPES.filter((scope) => scope !== "all");

const WrittenBudget = object({
  name: Name.describe("The budget's name, as in alerts and in bi.budgets."),
  project: Name.exactOptional().describe("The project's name. Left out: all that an export reads, together."),
  key: text(256).exactOptional().describe("Only usage of this key: a rotation's name, or an accessor."),
  tag: text(256).exactOptional().describe("Only usage with this tag, also together with others."),
  model: text(256).exactOptional().describe("Only usage of this model, also together with others."),
  metric: z.enum([...METRICS, "cost"]).describe('What is counted: a metric, or "cost".'),
  currency: Currency.exactOptional().describe("The currency of a cost, an ISO 4217 code."),
  amount: Decimal.describe("How much may be used in a period."),
  period: z.enum(BUDGET_PERIODS).default("month").describe("A calendar month or a day, in UTC."),
  thresholds: z
    .array(Decimal)
    .min(1)
    .prefault([80, 100])
    .describe("At how many percent there is an alert, in rising order."),
  from: Day.exactOptional().describe("The first day it is for. Left out: the period that is current then."),
});

type WrittenBudget = z.output<typeof WrittenBudget>;

export const BudgetList = z.array(withRules(WrittenBudget, budgetProblems));

function budgetProblems(budget: WrittenBudget): ConfigIssue[] {
  const { metric, currency, amount, thresholds, period, from } = budget;
  const bounds = thresholds.map((threshold, i) => ({ amount: threshold, path: ["thresholds", i] }));
  const issues = risingIssues(bounds, "threshold");
  const add = (field: string, message: string) => void issues.push({ path: [field], message });
  const [first, ...others] = SCOPED.filter((scope) => budget[scope] !== undefined);
  for (const scope of others) add(scope, `expected one of ${SCOPED.join(", ")}; this budget has "${first}", too`);
  if (metric === "cost" && currency === undefined) {
    add("currency", 'missing; expected the currency of the cost, such as "USD"');
  }
  if (metric !== "cost" && currency !== undefined) add("currency", `expected no currency: ${metric} has none`);
  if (Number(amount) === 0) add("amount", "expected more than 0; got 0");
  if (period === "month" && from !== undefined && !from.endsWith("-01")) {
    add("from", `expected the first day of a month, as the budget is by month; got ${from}`);
  }
  return issues;
}

/** A budget as the program uses it. Decimal numbers are exact text. */
export type Budget = Readonly<Omit<WrittenBudget, (typeof SCOPED)[number]>> & {
  readonly scope: BudgetScope;
  /** Undefined for "all". */
  readonly scopeValue: string | undefined;
  readonly projects: readonly Project[];
};

export function resolveBudgets(
  written: readonly WrittenBudget[],
  { projects, exports }: { readonly projects: readonly Project[]; readonly exports: readonly ExportJob[] },
): readonly Budget[] {
  const exported = new Set(exports.flatMap((job) => job.projects.map(({ id }) => id)));
  return written.map(({ key, tag, model, ...rest }): Budget => {
    const values = { all: undefined, key, tag, model };
    const scope = SCOPED.find((one) => values[one] !== undefined) ?? "all";
    const counted = projects
      .filter(({ id, name }) => (rest.project === undefined ? exported.has(id) : name === rest.project))
      .map(({ id, name }) => ({ id, name }));
    return { ...rest, scope, scopeValue: values[scope], projects: counted };
  });
}

type BudgetSetting = {
  readonly budgets: readonly Budget[];
  readonly exports: readonly ExportJob[];
  readonly prices: readonly Price[];
  readonly discovery: readonly object[];
};

/** A budget whose usage no export reads would never be used up. */
export function unreadIssues({ budgets, exports, prices, discovery }: BudgetSetting) {
  return budgets.flatMap(({ project, scope, metric, currency, projects }, i): ConfigIssue[] => {
    // Which projects a budget without `project` counts is not known before they are discovered.
    if (project === undefined && discovery.length > 0) return [];
    const grouping = SCOPE_GROUPINGS[scope];
    const isPriced = prices.length > 0 && (scope === "all" || scope === "model");
    const sources: [Source, Grouping][] = [];
    if (metric !== "cost") sources.push(["usage", grouping]);
    else if (currency === BILLED && scope !== "model") sources.push(["billing", grouping]);
    if (metric === "cost" && isPriced) sources.push(["usage", "model"]);
    const readers = exports.filter(({ source, groupings, filters }) => {
      const isUnfiltered = filters.some((filter) => filterKey(filter) === NO_CONDITIONS);
      return isUnfiltered && sources.some(([needed, by]) => source === needed && groupings.includes(by));
    });
    const read = new Set(readers.flatMap((job) => job.projects.map(({ id }) => id)));
    const unread = projects.filter(({ id }) => !read.has(id)).map(({ name }) => name);
    if (projects.length > 0 && unread.length === 0) return [];
    const needed = sources.map(([source, by]) => `the ${source} by the grouping ${JSON.stringify(by)}`).join(" or ");
    const what = needed || `what this costs (the service bills in ${BILLED}, and "prices" are not for one key or tag)`;
    const message = `no export reads ${what} of ${quoteAll(unread) || "any project"} without conditions, of which this budget is made: add it`;
    return [{ path: ["budgets", i], message }];
  });
}
