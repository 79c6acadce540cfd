// Prices and budgets: their schemas, the rules for their fields, and which usage a price covers. Pure.

import { z } from "zod";
import { addDays } from "../usage/days.ts";
import type { Dimension } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { BUDGET_PERIODS, BUDGET_SCOPES, type BudgetScope } from "../usage/money.ts";
import type { ExportJob } from "../usage/plan.ts";
import { filterKey, type Project } from "../usage/series.ts";
import { Currency, Day, Decimal, Name, object, text } from "./fields.ts";
import type { Path, Report } from "./json.ts";
import { quoteAll } from "./messages.ts";

const MODEL = 'a model, the beginning of models such as "nova-*", or "*" for any usage';

/** The dimensions that a price may be narrowed to. A request has one value of each, so prices with different values never price the same request. */
const PRICE_DIMENSIONS = ["endpoint", "method", "deployment"] as const satisfies readonly Dimension[];

/** How many of each unit make an hour. */
const HOUR_PARTS: Readonly<Record<string, string>> = { hour: "1", minute: "60", second: "3600" };
const PRICED_TIMES = Object.keys(HOUR_PARTS);

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

export const PriceOfFile = object({
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
export type Price = Readonly<z.output<typeof PriceOfFile>>;

export function checkPrice({ metric, per, price, from, until, tiers }: Price, report: Report): void {
  const bounds = tiers.map(({ above }, i) => ({ amount: above, path: ["tiers", i, "above"] }));
  reportNotRising(bounds, "tier", report);
  if (PRICED_TIMES.includes(per) && !metric.endsWith("hours")) {
    report(["per"], `expected a power of ten, as ${metric} is not measured in time; got "${per}"`);
  }
  if (until !== undefined && until < from) {
    report(["until"], `expected a day not before "from", which is ${from}; got "${until}"`);
  }
  if (price === null && tiers.length > 0) report(["tiers"], 'expected no tiers where "price" is null');
}

function reportNotRising(amounts: readonly { amount: string; path: Path }[], what: string, report: Report): void {
  for (const [i, { amount, path }] of amounts.entries()) {
    const before = amounts[i - 1]?.amount ?? "0";
    if (Number(amount) > Number(before)) continue;
    report(path, `expected more than ${before}, each ${what} above the one before; got ${amount}`);
  }
}

/** `per` is a time or a power of ten. The price of one unit is the written price times this factor, an exact text: no price is ever divided. */
export function unitFactor(per: string): string {
  const factor = HOUR_PARTS[per];
  if (factor !== undefined) return factor;
  const zeros = per.length - 1;
  return zeros === 0 ? "1" : `0.${"0".repeat(zeros - 1)}1`;
}

/** A price is for rows of series with the grouping `model`. Returns the `filterKey` of those series. */
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

/** Finds each price that overlaps an earlier one of the list, in its usage and its days. Returns the indexes of both. */
export function overlappingPrices(prices: readonly Price[]) {
  const ended = withEnds(prices);
  return ended.flatMap((price, index) => {
    const overlaps = (other: Price) => coversSameUsage(price, other) && sharesDays(price, other);
    const earlier = ended.slice(0, index).findIndex(overlaps);
    return earlier === -1 ? [] : [{ index, earlier }];
  });
}

function coversSameUsage(a: Price, b: Price): boolean {
  const isCompatible = PRICE_DIMENSIONS.every((dimension) => {
    const [one, other] = [a[dimension], b[dimension]];
    return one === undefined || other === undefined || one === other;
  });
  const [one, other] = [beginningOf(a.model), beginningOf(b.model)];
  return a.metric === b.metric && isCompatible && (one.startsWith(other) || other.startsWith(one));
}

/** The end of a whole name is marked, so that the name is the beginning of no other name. */
function beginningOf(model: string): string {
  return model.endsWith("*") ? model.slice(0, -1) : `${model}\0`;
}

function sharesDays(a: Price, b: Price): boolean {
  return (a.until === undefined || b.from <= a.until) && (b.until === undefined || a.from <= b.until);
}

const SCOPED = BUDGET_SCOPES.filter((scope) => scope !== "all");

export const BudgetOfFile = object({
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

type WrittenBudget = z.output<typeof BudgetOfFile>;

export function checkBudget(budget: WrittenBudget, report: Report): void {
  const { metric, currency, amount, thresholds, period, from } = budget;
  const bounds = thresholds.map((threshold, i) => ({ amount: threshold, path: ["thresholds", i] }));
  reportNotRising(bounds, "threshold", report);
  const [first, ...others] = SCOPED.filter((scope) => budget[scope] !== undefined);
  for (const scope of others) {
    report([scope], `expected one of ${SCOPED.join(", ")}; this budget has "${first}", too`);
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
