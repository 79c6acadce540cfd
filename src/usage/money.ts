// Prices and budgets: which usage a price covers, which prices overlap, and how much of a budget is used. Pure.

import { addDays, type Day } from "./days.ts";
import type { Dimension } from "./dimensions.ts";
import type { Metric } from "./metrics.ts";
import { filterKey, type Grouping } from "./series.ts";

// Prices. Usage has one price at most.

/** The dimensions that a price may be narrowed to. A request has one value of each, so prices with different values never price the same request. */
const PRICE_DIMENSIONS = ["endpoint", "method", "deployment"] as const satisfies readonly Dimension[];

/** How many of each unit make an hour. */
const HOUR_PARTS: Readonly<Record<string, string>> = { hour: "1", minute: "60", second: "3600" };
export const PRICED_TIMES = Object.keys(HOUR_PARTS);

/** The usage that a price is for. `model` is a name, the beginning of names followed by `*`, or `*` alone for any usage. */
type PricedUsage = { readonly metric: Metric; readonly model: string } & {
  readonly [Name in (typeof PRICE_DIMENSIONS)[number]]?: string;
};

/** `until` is the last day; without it the price has no end. */
type ValidDays = { readonly from: Day; readonly until?: Day | undefined };

/** `per` is a time or a power of ten. The price of one unit is the written price times this factor, an exact text: no price is ever divided. */
export function unitFactor(per: string): string {
  const factor = HOUR_PARTS[per];
  if (factor !== undefined) return factor;
  const zeros = per.length - 1;
  return zeros === 0 ? "1" : `0.${"0".repeat(zeros - 1)}1`;
}

/** A price is for rows of series with the grouping `model`. Returns the `filterKey` of those series. */
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

/** Finds each price that overlaps an earlier one of the list, in its usage and its days. Returns the indexes of both. */
export function overlappingPrices(prices: readonly (PricedUsage & ValidDays)[]) {
  const ended = withEnds(prices);
  return ended.flatMap((price, index) => {
    const overlaps = (other: PricedUsage & ValidDays) => coversSameUsage(price, other) && sharesDays(price, other);
    const earlier = ended.slice(0, index).findIndex(overlaps);
    return earlier === -1 ? [] : [{ index, earlier }];
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
  const [one, other] = [beginningOf(a), beginningOf(b)];
  return one.startsWith(other) || other.startsWith(one);
}

/** The end of a whole name is marked, so that the name is the beginning of no other name. */
function beginningOf(model: string): string {
  return model.endsWith("*") ? model.slice(0, -1) : `${model}\0`;
}

function sharesDays(a: ValidDays, b: ValidDays): boolean {
  return (a.until === undefined || b.from <= a.until) && (b.until === undefined || a.from <= b.until);
}

// Budgets.

export const BUDGET_PERIODS = ["month", "day"] as const;

/** What a budget is for: all usage, or one value of a dimension. A key stands for all keys of its rotation. */
export const BUDGET_SCOPES = ["all", "key", "tag", "model"] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

/** The grouping of the unfiltered series that the use of a budget is read from. */
export const SCOPE_GROUPINGS: Readonly<Record<BudgetScope, Grouping>> = {
  all: "none",
  key: "accessor",
  tag: "tags",
  model: "model",
};

/** A budget in one period. Amounts and percentages are decimal text. */
export type BudgetUse = {
  readonly name: string;
  readonly projectIds: readonly string[];
  readonly metric: string;
  readonly currency: string | null;
  /** "billed", "estimated", or "billed and estimated" if projects differ; null if the budget is for no cost. */
  readonly costSource: string | null;
  readonly period: (typeof BUDGET_PERIODS)[number];
  readonly start: Day;
  readonly end: Day;
  readonly amount: string;
  readonly scope: BudgetScope;
  /** Null for all usage. */
  readonly scopeValue: string | null;
  /** Null if no day of the period was read. */
  readonly used: string | null;
  /** `used` in percent of `amount`, cut to two decimals: 99.999 % is not shown as 100. */
  readonly percent: string | null;
  readonly forecast: string | null;
  readonly forecastLow: string | null;
  readonly forecastHigh: string | null;
  /** `forecast` in percent of `amount`, cut as `percent` is. */
  readonly forecastPercent: string | null;
  /** In percent of `amount`, in rising order. */
  readonly thresholds: readonly string[];
  readonly reached: readonly string[];
  readonly daysMissing: number;
  readonly daysNotFinal: number;
  readonly hasUnpriced: boolean;
  /** No project has stored usage or cost with the key, tag or model: it may be misspelt. */
  readonly isNeverSeen: boolean;
  readonly isFinal: boolean;
  /** The period is over, which does not mean that its numbers are final. */
  readonly isOver: boolean;
  /** The period was over before the budget was stored as it is, so nobody is notified of it. */
  readonly isBeforeStored: boolean;
};

/** The budgets to show beside the usage of a project alone: a budget of several projects would say what the others used. */
export function budgetsOf(budgets: readonly BudgetUse[], projectId: string | null): readonly BudgetUse[] {
  return projectId === null ? budgets : budgets.filter(({ projectIds }) => projectIds.every((id) => id === projectId));
}
