// Prices and budgets: their schemas, the rules for their fields, and which usage a price covers. Pure.

import { z } from "zod";
import { BUDGET_PERIODS, type BudgetScope } from "../usage/budgets.ts";
import { addDays } from "../usage/days.ts";
import type { Dimension } from "../usage/dimensions.ts";
import type { ExportJob } from "../usage/export-plan.ts";
import { METRICS } from "../usage/metrics.ts";
import { filterKey, type Project } from "../usage/series.ts";
import { Currency, Day, Decimal, Name, object, text } from "./fields.ts";
import type { Report } from "./json.ts";
import { quoteAll } from "./messages.ts";

/** A price is for one value of each, or for all values. A request has one value of each, so prices for different values share no request. */
const PRICE_DIMENSIONS = ["endpoint", "method", "deployment"] as const satisfies readonly Dimension[];

/** Numbers as text. */
const UNITS_PER_HOUR: Readonly<Record<string, string>> = { hour: "1", minute: "60", second: "3600" };
const PRICED_TIMES = Object.keys(UNITS_PER_HOUR);

const Per = z
  .union([z.enum(PRICED_TIMES), z.literal(Array.from({ length: 13 }, (_, n) => 10 ** n))], {
    error: `1, 10, 100 and so on, or one of ${quoteAll(PRICED_TIMES)}`,
  })
  .transform(String);

const Tier = object({
  above: Decimal.describe("The month's quantity above which the tier begins."),
  price: Decimal.describe("The price of what exceeds it."),
});

export const PriceInFile = object({
  metric: z.enum(METRICS).describe(`The metric that is paid for: ${METRICS.join(", ")}.`),
  model: text(256)
    // A set of models, '["nova-2","nova-3"]', is refused: "nova-*" also matches the usage of a set, and `overlaps` would not notice that.
    .regex(/^(?!\[)[^*]*\*?$/, 'a model, the beginning of models such as "nova-*", or "*" for any usage')
    .describe('A model, a beginning such as "nova-*", or "*" for any usage.'),
  endpoint: text(256).exactOptional().describe("Only usage of this endpoint."),
  method: text(256).exactOptional().describe("Only usage by this processing method."),
  deployment: text(256).exactOptional().describe("Only usage of this deployment type."),
  currency: Currency.describe("An ISO 4217 code."),
  price: Decimal.nullable().describe("The price, as a number or as text; null: these days have no price."),
  per: Per.prefault(1).describe('What quantity the price is for: a power of ten, or "hour", "minute" or "second".'),
  from: Day.describe("The first day the price is valid for, in UTC."),
  until: Day.exactOptional().describe("The last day. Left out: until the next price of the same usage."),
  tiers: z.array(Tier).prefault([]).describe("Prices for what exceeds a quantity in a calendar month."),
});

export type Price = Readonly<z.output<typeof PriceInFile>>;

export function checkPrice({ metric, per, price, from, until, tiers }: Price, report: Report): void {
  const bounds = tiers.map(({ above }) => above);
  reportNotRising(bounds, "tier", (i, problem) => report(["tiers", i, "above"], problem));
  if (PRICED_TIMES.includes(per) && !metric.endsWith("hours")) {
    report(["per"], `expected a power of ten, as ${metric} is not measured in time; got "${per}"`);
  }
  if (until !== undefined && until < from) {
    report(["until"], `expected a day not before "from", which is ${from}; got "${until}"`);
  }
  if (price === null && tiers.length > 0) report(["tiers"], 'expected no tiers where "price" is null');
}

function reportNotRising(amounts: readonly string[], what: string, report: (index: number, problem: string) => void) {
  for (const [i, amount] of amounts.entries()) {
    const before = amounts[i - 1] ?? "0";
    if (Number(amount) > Number(before)) continue;
    report(i, `expected more than ${before}, each ${what} above the one before; got ${amount}`);
  }
}

/** Multiplied by this factor, the price for `per` is the price for 1 of the metric (1 hour). It is exact text: dividing by `per` would round. */
export function unitFactor(per: string): string {
  return UNITS_PER_HOUR[per] ?? (1 / Number(per)).toFixed(per.length - 1);
}

/** Returns the `filterKey` of the series whose rows the price is for. Their grouping is `model`. */
export function priceFilterKey(price: Price): string {
  const conditions = PRICE_DIMENSIONS.flatMap((one) => (price[one] === undefined ? [] : [[one, price[one]]]));
  return filterKey({ name: "", features: {}, dimensions: Object.fromEntries(conditions) });
}

function usageKey(price: Price): string {
  return JSON.stringify([price.metric, price.model, priceFilterKey(price)]);
}

/** A price without an end of its own ends on the day before the next price for the same usage begins. */
export function withEnds(prices: readonly Price[]): Price[] {
  return prices.map((price) => {
    if (price.until !== undefined) return price;
    const later = prices.filter((other) => other.from > price.from && usageKey(other) === usageKey(price));
    const [next] = later.map(({ from }) => from).sort();
    return next === undefined ? price : { ...price, until: addDays(next, -1) };
  });
}

/** Returns the index of each price that shares usage and days with an earlier price, and that price's index. */
export function overlappingPrices(prices: readonly Price[]) {
  const ended = withEnds(prices);
  return ended.flatMap((price, index) => {
    const earlier = ended.slice(0, index).findIndex((other) => overlaps(price, other));
    return earlier === -1 ? [] : [{ index, earlier }];
  });
}

function overlaps(a: Price, b: Price): boolean {
  const sharesDays = (a.until === undefined || b.from <= a.until) && (b.until === undefined || a.from <= b.until);
  const sharesRequests = PRICE_DIMENSIONS.every((one) => !a[one] || !b[one] || a[one] === b[one]);
  const [one, other] = [beginningOf(a.model), beginningOf(b.model)];
  const sharesModels = one.startsWith(other) || other.startsWith(one);
  return a.metric === b.metric && sharesDays && sharesRequests && sharesModels;
}

/** A whole name gets an end mark, so "nova-2" is not the beginning of "nova-20". */
function beginningOf(model: string): string {
  return model.endsWith("*") ? model.slice(0, -1) : `${model}\0`;
}

const SCOPE_FIELDS = ["key", "tag", "model"] as const satisfies readonly BudgetScope[];

export const BudgetInFile = object({
  name: Name.describe("The budget's name, as in alerts and in bi.budgets."),
  project: Name.exactOptional().describe("The project's name. Left out: all projects that exports read, together."),
  key: text(256).exactOptional().describe("Only usage of this key: a rotation's name, or an accessor."),
  tag: text(256).exactOptional().describe("Only usage with this tag, alone or with other tags."),
  model: text(256).exactOptional().describe("Only usage of this model, alone or with other models."),
  metric: z.enum([...METRICS, "cost"]).describe('What is counted: a metric, or "cost".'),
  currency: Currency.exactOptional().describe("The currency of a cost, an ISO 4217 code."),
  amount: Decimal.describe("How much may be used in a period."),
  period: z.enum(BUDGET_PERIODS).default("month").describe("A calendar month or a day, in UTC."),
  thresholds: z
    .array(Decimal)
    .min(1)
    .prefault([80, 100])
    .describe("The percentages of `amount` that raise an alert, in rising order."),
  from: Day.exactOptional().describe("The budget's first day. Left out: the start of the period in which it is added."),
});

type BudgetInFile = z.output<typeof BudgetInFile>;

export function checkBudget(budget: BudgetInFile, report: Report): void {
  const { metric, currency, amount, thresholds, period, from } = budget;
  reportNotRising(thresholds, "threshold", (i, problem) => report(["thresholds", i], problem));
  const [first, ...others] = SCOPE_FIELDS.filter((scope) => budget[scope] !== undefined);
  for (const scope of others) {
    report([scope], `expected one of ${SCOPE_FIELDS.join(", ")}; this budget has "${first}", too`);
  }
  if (metric === "cost" && currency === undefined) {
    report(["currency"], 'missing; expected the currency of the cost, such as "USD"');
  }
  if (metric !== "cost" && currency !== undefined) report(["currency"], `expected no currency: ${metric} has none`);
  if (Number(amount) === 0) report(["amount"], "expected more than 0; got 0");
  if (period === "month" && from !== undefined && !from.endsWith("-01")) {
    report(["from"], `expected the first day of a month, as the budget is by month; got ${from}`);
  }
}

export type Budget = Readonly<ReturnType<typeof resolveBudgets>[number]>;

/** Adds the projects and the scope of each budget. `scopeValue` is undefined if `scope` is "all". */
export function resolveBudgets(
  budgets: readonly BudgetInFile[],
  { projects, exports }: { readonly projects: readonly Project[]; readonly exports: readonly ExportJob[] },
) {
  const exported = new Set(exports.flatMap((job) => job.projects.map(({ id }) => id)));
  return budgets.map(({ key, tag, model, ...budget }) => {
    const values = { all: undefined, key, tag, model };
    const scope: BudgetScope = SCOPE_FIELDS.find((one) => values[one] !== undefined) ?? "all";
    const counted = projects
      .filter(({ id, name }) => (budget.project === undefined ? exported.has(id) : name === budget.project))
      .map(({ id, name }) => ({ id, name }));
    return { ...budget, scope, scopeValue: values[scope], projects: counted };
  });
}
