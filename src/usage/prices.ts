// The price book: which usage a price covers, and which prices overlap. Usage has one price at most. Pure.

import { addDays, type Day } from "./days.ts";
import type { Dimension } from "./dimensions.ts";
import type { Metric } from "./metrics.ts";
import { filterKey } from "./series.ts";

/**
 * The dimensions that a price may be narrowed to. A request has one value of each, so that two prices with different values never price the same
 * request. It may have several features and tags.
 */
const PRICE_DIMENSIONS = ["endpoint", "method", "deployment"] as const satisfies readonly Dimension[];

/** How many of each unit are an hour. */
const HOUR_PARTS: Readonly<Record<string, string>> = { hour: "1", minute: "60", second: "3600" };
export const PRICED_TIMES = Object.keys(HOUR_PARTS);

/** The usage that a price is for. `model` is a name, the beginning of names followed by `*`, or `*` alone for any usage. */
type PricedUsage = { readonly metric: Metric; readonly model: string } & {
  readonly [Name in (typeof PRICE_DIMENSIONS)[number]]?: string;
};

/** `until` is the last day; without it the price has no end. */
type ValidDays = { readonly from: Day; readonly until?: Day | undefined };

/** What the written price is multiplied with to get the price of one unit of the metric, as exact text: no price is ever divided. */
export function unitFactor(per: string): string {
  const factor = HOUR_PARTS[per];
  if (factor !== undefined) return factor;
  const zeros = per.length - 1;
  return zeros === 0 ? "1" : `0.${"0".repeat(zeros - 1)}1`;
}

/** The `filterKey` of the series by model whose rows a price is for. */
export function priceFilterKey(price: PricedUsage): string {
  const conditions = PRICE_DIMENSIONS.flatMap((one) => (price[one] === undefined ? [] : [[one, price[one]]]));
  return filterKey({ name: "", features: {}, dimensions: Object.fromEntries(conditions) });
}

function usageKey(price: PricedUsage): string {
  return JSON.stringify([price.metric, price.model, priceFilterKey(price)]);
}

/** A price without an end of its own ends on the day before the next price for the same usage begins. */
export function withEnds<T extends PricedUsage & ValidDays>(prices: readonly T[]): T[] {
  return prices.map((price) => {
    if (price.until !== undefined) return price;
    const later = prices.filter((other) => other.from > price.from && usageKey(other) === usageKey(price));
    const [next] = later.map(({ from }) => from).sort();
    return next === undefined ? price : { ...price, until: addDays(next, -1) };
  });
}

/**
 * Finds each price that would price the same usage of the same day as an earlier one. Returns the indexes of both. A price whose last day is
 * before its first shares no day, not even with itself.
 */
export function overlappingPrices(prices: readonly (PricedUsage & ValidDays)[]) {
  const ended = withEnds(prices);
  return ended.flatMap((price, index) => {
    const earlier = ended.findIndex((other) => coversSameUsage(price, other) && sharesDays(price, other));
    return earlier !== -1 && earlier < index ? [{ index, earlier }] : [];
  });
}

function coversSameUsage(a: PricedUsage, b: PricedUsage): boolean {
  const isCompatible = PRICE_DIMENSIONS.every((dimension) => {
    const [one, other] = [a[dimension], b[dimension]];
    return one === undefined || other === undefined || one === other;
  });
  return a.metric === b.metric && isCompatible && sharesModels(a.model, b.model);
}

function sharesModels(a: string, b: string): boolean {
  const [prefix, other] = a.endsWith("*") ? [a.slice(0, -1), b] : [b.endsWith("*") ? b.slice(0, -1) : undefined, a];
  if (prefix === undefined) return a === b;
  // Two prefixes share models if one of them begins with the other.
  if (other.endsWith("*")) return prefix.startsWith(other.slice(0, -1)) || other.startsWith(prefix);
  return other.startsWith(prefix);
}

function sharesDays(a: ValidDays, b: ValidDays): boolean {
  return (a.until === undefined || b.from <= a.until) && (b.until === undefined || a.from <= b.until);
}
