// The price book: which usage a price covers, which prices overlap, and which stored prices stay in force beside the configured ones.
// Each amount of usage has one price at most. Pure.

import { addDays, type Day } from "./days.ts";
import type { Dimension } from "./dimensions.ts";
import type { METRICS } from "./metrics.ts";
import type { ConfiguredSeries } from "./plan.ts";
import { filterKey } from "./series.ts";

/**
 * The dimensions that a price may be narrowed to. A request has one value of each: two prices with different values never price the
 * same request. Of features and tags a request may have several.
 */
export const PRICE_DIMENSIONS = ["endpoint", "method", "deployment"] as const satisfies readonly Dimension[];

/** "account": the quantities of all projects together decide on tier and minimum. */
export const PRICE_VOLUMES = ["account", "project"] as const;

/** How many of such a unit an hour has: by this the price of the unit is multiplied to get the price of an hour. */
const HOUR_PARTS: Readonly<Record<string, string>> = { hour: "1", minute: "60", second: "3600" };
export const PRICED_TIMES = Object.keys(HOUR_PARTS);

/** Decimal numbers are exact text, as from `decimalText`. */
type Tier = { readonly above: string; readonly price: string };

/** The usage that a price is for. */
type PricedUsage = {
  readonly metric: (typeof METRICS)[number];
  /** A name, the beginning of names followed by `*`, `*` alone for any usage, or the sorted JSON array of a set of models. */
  readonly model: string;
  readonly conditions: Readonly<Partial<Record<(typeof PRICE_DIMENSIONS)[number], string>>>;
};

/** `until` is the last day; without it the price has no end. */
type DayRange = { readonly from: Day; readonly until?: Day | undefined };

type PriceTerms = {
  /** An ISO 4217 code. */
  readonly currency: string;
  /** The number of decimals to which an amount in the currency is rounded when everything has been added up. */
  readonly digits: number;
  /** A power of ten, or one of PRICED_TIMES. */
  readonly per: string;
  /** The price up to the first tier; null: these days have no price, whatever is stored. */
  readonly price: string | null;
  readonly tiers: readonly Tier[];
  /** What a calendar month with such usage costs at least. */
  readonly minimum?: string | undefined;
  readonly volume: (typeof PRICE_VOLUMES)[number];
};

export type Price = PricedUsage & DayRange & PriceTerms;

/** A price as the database has it: its `price` is never null. */
export type StoredPrice = Price & { readonly id: number };

/** The factor from the written price to the price of one unit of the metric, as exact decimal text: no price is ever divided. */
export function unitFactor(per: string): string {
  const factor = HOUR_PARTS[per];
  if (factor !== undefined) return factor;
  const zeros = per.length - 1;
  return zeros === 0 ? "1" : `0.${"0".repeat(zeros - 1)}1`;
}

/** The `filterKey` of the series whose rows a price is for. They are grouped by model. */
export function priceFilterKey({ conditions }: Pick<PricedUsage, "conditions">): string {
  return filterKey({ name: "", features: {}, dimensions: conditions });
}

function usageKey(price: PricedUsage): string {
  return JSON.stringify([price.metric, price.model, priceFilterKey(price)]);
}

/** A price without an end of its own ends on the day before the next price for the same usage begins. */
export function withEnds<T extends PricedUsage & DayRange>(prices: readonly T[]): T[] {
  return prices.map((price) => withEnd(price, prices));
}

function withEnd<T extends PricedUsage & DayRange>(price: T, others: readonly (PricedUsage & DayRange)[]): T {
  if (price.until !== undefined) return price;
  const later = others.filter((other) => other.from > price.from && usageKey(other) === usageKey(price));
  const [next] = later.map(({ from }) => from).sort();
  return next === undefined ? price : { ...price, until: addDays(next, -1) };
}

/** Pairs of prices, by index, that would price the same usage of the same day; each price with the first such price before it. */
export function overlappingPrices(
  prices: readonly (PricedUsage & DayRange)[],
): { readonly index: number; readonly earlier: number }[] {
  const ended = withEnds(prices);
  return ended.flatMap((price, index) => {
    const earlier = ended
      .slice(0, index)
      .findIndex((other) => coversSameUsage(price, other) && sharesDays(price, other));
    return earlier === -1 ? [] : [{ index, earlier }];
  });
}

function coversSameUsage(a: PricedUsage, b: PricedUsage): boolean {
  const isCompatible = PRICE_DIMENSIONS.every((dimension) => {
    const [one, other] = [a.conditions[dimension], b.conditions[dimension]];
    return one === undefined || other === undefined || one === other;
  });
  return a.metric === b.metric && isCompatible && sharesModels(a.model, b.model);
}

function sharesModels(a: string, b: string): boolean {
  const [prefix, other] = a.endsWith("*") ? [a.slice(0, -1), b] : [b.endsWith("*") ? b.slice(0, -1) : undefined, a];
  if (prefix === undefined) return a === b;
  // Two prefixes share models if one of them begins with the other.
  if (other.endsWith("*")) return prefix.startsWith(other.slice(0, -1)) || other.startsWith(prefix);
  return modelsIn(other).every((model) => model.startsWith(prefix));
}

function modelsIn(model: string): readonly string[] {
  if (!model.startsWith("[")) return [model];
  const models: unknown = JSON.parse(model);
  return Array.isArray(models) ? models.map(String) : [model];
}

function sharesDays(a: DayRange, b: DayRange): boolean {
  return (a.until === undefined || b.from <= a.until) && (b.until === undefined || a.from <= b.until);
}

/** What the database has to change: the ids of versions that are replaced, and the versions that are new. */
export type BookChange = { readonly replaced: readonly number[]; readonly added: readonly Price[] };

/**
 * The configured prices win on every day that they name. A stored price stays in force on the days for which the configuration has
 * no price of that usage: a price that was removed from the file, or got a later first day, keeps its past. A configured price with
 * the usage and the first day of a stored one is that price, edited: of the stored one no day stays.
 */
export function changeBook(stored: readonly StoredPrice[], configured: readonly Price[]): BookChange {
  const startKeys = new Set(stored.map(startKey));
  const book = configured.map((price) => {
    // If the file no longer has the price that came next, the price before it must not grow over the days of the stored one.
    const isUnchanged = startKeys.has(startKey(price));
    return withEnd(price, isUnchanged ? [...configured, ...stored] : configured);
  });
  const known = new Set(stored.map(priceKey));
  const replaced: number[] = [];
  const added = book.filter((price) => price.price !== null && !known.has(priceKey(price)));
  const bookKeys = new Set(book.map(priceKey));
  for (const old of stored) {
    if (bookKeys.has(priceKey(old))) continue;
    const winners = book.filter((price) => coversSameUsage(price, old) && sharesDays(price, old));
    if (winners.length === 0) continue;
    replaced.push(old.id);
    if (winners.some((price) => price.from === old.from && usageKey(price) === usageKey(old))) continue;
    const { id: _, ...rest } = old;
    added.push(
      ...winners.reduce<readonly Price[]>((parts, winner) => parts.flatMap((part) => without(part, winner)), [rest]),
    );
  }
  return { replaced, added };
}

/** The price on the days outside the range. */
function without(price: Price, range: DayRange): Price[] {
  if (!sharesDays(price, range)) return [price];
  const before = price.from < range.from ? [{ ...price, until: addDays(range.from, -1) }] : [];
  const { until } = range;
  const isAfter = until !== undefined && (price.until === undefined || until < price.until);
  return isAfter ? [...before, { ...price, from: addDays(until, 1) }] : before;
}

/** Two prices with the same key are the same version. */
function priceKey(price: Price): string {
  return JSON.stringify([startKey(price), price.until ?? null]);
}

/** All of a price but its end. `digits` is not part of it, because it follows from the currency. */
function startKey(price: Price): string {
  const { currency, per, price: base, minimum = null, volume, from } = price;
  const tiers = price.tiers.map(({ above, price }) => [above, price]);
  return JSON.stringify([usageKey(price), currency, per, base, tiers, minimum, volume, from]);
}

type UnreadPrice = Pick<Price, "conditions"> & { readonly index: number; readonly projects: readonly string[] };

/** The prices whose usage no export reads, each with the projects in which it does not. */
export function unreadPrices(
  prices: readonly Pick<Price, "conditions">[],
  configured: readonly ConfiguredSeries[],
): UnreadPrice[] {
  const byProject = Map.groupBy(configured, ({ series }) => series.project.name);
  return prices.flatMap(({ conditions }, index) => {
    const wantedKey = priceFilterKey({ conditions });
    const isRead = ({ series }: ConfiguredSeries) =>
      series.grouping === "model" && filterKey(series.filter) === wantedKey;
    const projects = [...byProject].filter(([, series]) => !series.some(isRead)).map(([name]) => name);
    return projects.length === 0 ? [] : [{ index, conditions, projects }];
  });
}
