// The schemas of prices and of budgets, and what is wrong with them: usage with two prices, a budget whose usage no export reads. Pure.

import { z } from "zod";
import { BUDGET_PERIODS, BUDGET_SCOPES, type Budget, SCOPE_GROUPINGS } from "../usage/budgets.ts";
import { documentedValues, type Source } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import type { ExportJob } from "../usage/plan.ts";
import { overlappingPrices, type PRICE_DIMENSIONS, PRICE_VOLUMES, PRICED_TIMES, type Price } from "../usage/prices.ts";
import { filterKey, type Grouping, NO_CONDITIONS, type Project } from "../usage/series.ts";
import { Currency, Day, Decimal, isGreater, Name, object, reporting, reportingIssues, text } from "./fields.ts";
import type { Path } from "./json.ts";
import { type ConfigIssue, describeValue, didYouMean, quoteAll } from "./messages.ts";

const MODEL =
  'a model, the beginning of models such as "nova-*", "*" for any usage, or a list of models that are used together';

const ModelName = text(256);
const Model = z
  .union([ModelName, z.array(ModelName).min(1)], { error: MODEL })
  .superRefine(
    reporting((model) => {
      const names = typeof model === "string" ? [model.replace(/\*$/, "")] : model;
      const wrong = names.find((name) => name.includes("*") || name.startsWith("["));
      return wrong === undefined
        ? undefined
        : `expected ${MODEL}; got ${describeValue(typeof model === "string" ? model : wrong)}`;
    }),
  )
  .transform((model) => {
    if (typeof model === "string") return model;
    const [first = "", ...others] = [...new Set(model)].sort();
    return others.length === 0 ? first : JSON.stringify([first, ...others]);
  });

const PER = `1, 10, 100 and so on, or one of ${quoteAll(PRICED_TIMES)}`;

const Per = z
  .union([z.number(), z.string()], { error: PER })
  .superRefine(
    reporting((per) => {
      if (/^10{0,12}$/.test(String(per)) || PRICED_TIMES.includes(String(per))) return undefined;
      return `expected ${PER}; got ${describeValue(per)}${didYouMean(String(per), PRICED_TIMES)}`;
    }),
  )
  .transform(String);

const Tier = object({
  above: Decimal.describe(
    "The quantity of the month after which the tier begins, in the unit of the metric (hours, also if the price is per minute).",
  ),
  price: Decimal.describe("The price of what is above it."),
});

const WrittenPrice = object({
  metric: z.enum(METRICS).describe("The metric that is paid for."),
  model: Model.describe(
    'A name; the beginning of names, such as "nova-*"; "*" for any usage, also without a model; or a list, for requests that use just these models at once. Such a set is priced only by its list, or by a beginning that all of its models have.',
  ),
  endpoint: conditionOn("endpoint").describe(
    "Only usage of this endpoint. Needs an export by model with just this filter.",
  ),
  method: conditionOn("method").describe("Only usage by this processing method, in the same way."),
  deployment: conditionOn("deployment").describe("Only usage of this deployment type, in the same way."),
  currency: Currency.describe("An ISO 4217 code."),
  price: Decimal.nullable().describe(
    "The price, as a number or as text; every digit counts. null: these days have no price.",
  ),
  per: Per.prefault(1).describe(
    'How much the price is for: a power of ten, or "hour", "minute" or "second" for a metric in hours.',
  ),
  from: Day.describe("The first day the price is valid for, in UTC."),
  until: Day.exactOptional().describe("The last day. Left out: until the next price of the same usage."),
  tiers: z
    .array(Tier)
    .prefault([])
    .describe("Other prices for what a calendar month has above a quantity; what is below keeps its price."),
  volume: z
    .enum(PRICE_VOLUMES)
    .default("account")
    .describe(
      'Whose quantities count together for tiers: "account" takes all projects of the database, as published price lists do; "project" takes each by itself.',
    ),
});

/** Any text: the interface's list may be older than the service. */
function conditionOn(dimension: (typeof PRICE_DIMENSIONS)[number]): z.ZodExactOptional<z.ZodString> {
  return text(256)
    .meta({ examples: [...(documentedValues(dimension, "usage") ?? [])] })
    .exactOptional();
}

type WrittenPrice = z.output<typeof WrittenPrice>;

const PriceEntry = WrittenPrice.superRefine(reportingIssues(priceProblems)).transform(
  ({ endpoint, method, deployment, ...price }): Price => {
    const conditions = { ...(endpoint && { endpoint }), ...(method && { method }), ...(deployment && { deployment }) };
    return { ...price, conditions };
  },
);

/** What one field of a price says about another. */
function priceProblems({ metric, per, price, from, until, tiers }: WrittenPrice): ConfigIssue[] {
  const issues = risingIssues(
    tiers.map(({ above }, i) => ({ amount: above, path: ["tiers", i, "above"] })),
    "tier",
  );
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

function risingIssues(
  amounts: readonly { readonly amount: string; readonly path: Path }[],
  each: string,
): ConfigIssue[] {
  return amounts.flatMap(({ amount, path }, i) => {
    const before = amounts[i - 1]?.amount ?? "0";
    if (isGreater(amount, before)) return [];
    return [{ path, message: `expected more than ${before}, each ${each} above the one before; got ${amount}` }];
  });
}

export const PriceList = z.array(PriceEntry);

export function overlapIssues(prices: readonly Price[]): ConfigIssue[] {
  return overlappingPrices(prices).flatMap(({ index, earlier }) => {
    const other = prices[earlier];
    if (!other) return [];
    const message = `prices the same usage as prices[${earlier}] (${describePrice(other)}): usage has one price; end one of them with "until", or give them models, endpoints, methods or deployments that have nothing in common`;
    return [{ path: ["prices", index], message }];
  });
}

/** `hours of "nova-3", listen, from 2026-01-01` */
function describePrice({ metric, model, conditions, from }: Price): string {
  const narrowed = Object.values(conditions).map((value) => `, ${value}`);
  return `${metric} of ${model.startsWith("[") ? model : JSON.stringify(model)}${narrowed.join("")}, from ${from}`;
}

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
  tag: text(256)
    .exactOptional()
    .describe("Only usage with this tag, whatever other tags it has: budgets of tags overlap."),
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

export const BudgetList = z.array(WrittenBudget.superRefine(reportingIssues(budgetProblems)));

/** What one field of a budget says about another. */
function budgetProblems(budget: WrittenBudget): ConfigIssue[] {
  const { metric, currency, amount, thresholds, period, from } = budget;
  const issues = risingIssues(
    thresholds.map((one, i) => ({ amount: one, path: ["thresholds", i] })),
    "threshold",
  );
  const add = (field: string, message: string) => void issues.push({ path: [field], message });
  const [first, ...others] = SCOPED.filter((scope) => budget[scope] !== undefined);
  for (const scope of others) add(scope, `expected one of ${SCOPED.join(", ")}; this budget has "${first}", too`);
  if (metric === "cost" && currency === undefined) {
    add("currency", 'missing; expected the currency of the cost, such as "USD"');
  }
  if (metric !== "cost" && currency !== undefined) add("currency", `expected no currency: ${metric} has none`);
  if (!isGreater(amount, "0")) add("amount", "expected more than 0; got 0");
  if (period === "month" && from !== undefined && !from.endsWith("-01")) {
    add("from", `expected the first day of a month, as the budget is by month; got ${from}`);
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
function unreadIssues({ scope, metric, currency, projects }: Budget, { exports, hasPrices }: Readers): string[] {
  if (projects.length === 0) return ["no export reads any project, so nothing is counted: add an export"];
  const grouping = SCOPE_GROUPINGS[scope];
  const isBilled = metric === "cost" && currency === BILLED && scope !== "model";
  const isPriced = metric === "cost" && hasPrices && (scope === "all" || scope === "model");
  const sources: readonly (readonly [Source, Grouping])[] = [
    ...(metric === "cost" ? [] : [["usage", grouping] as const]),
    ...(isBilled ? [["billing", grouping] as const] : []),
    ...(isPriced ? [["usage", "model"] as const] : []),
  ];
  const unpriced = scope === "all" || scope === "model" ? 'there are no "prices"' : `prices are not for one ${scope}`;
  if (sources.length === 0) {
    return [
      `nothing says what this costs in ${currency}: the service bills in ${BILLED}, not by model, and ${unpriced}`,
    ];
  }
  const readers = exports.filter((job) =>
    sources.some(([source, by]) => job.source === source && job.groupings.includes(by) && isUnfiltered(job)),
  );
  const read = new Set(readers.flatMap((job) => job.projects.map(({ id }) => id)));
  const needed = sources.map(([source, by]) => `the ${source} by the grouping ${JSON.stringify(by)}`).join(" or ");
  return projects
    .filter(({ id }) => !read.has(id))
    .map(({ name }) => `no export reads ${needed} of ${name} without conditions, of which this budget is made: add it`);
}

function isUnfiltered({ filters }: ExportJob): boolean {
  return filters.some((filter) => filterKey(filter) === NO_CONDITIONS);
}
