// What the service answers about usage and cost: breakdowns (parameters read, records filtered, grouped and added up), the names and values
// that can be filtered by, and balances. All are made from the same records. Pure.

import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  type Dialect,
  nameIn,
  USAGE_DIMENSIONS,
  type UsageDimension,
} from "../usage/dimensions.ts";
import {
  type Amounts,
  FEATURES,
  type GroupValue,
  modelId,
  sortedIfSet,
  sumOf,
  type UsageRecord,
  uuidFrom,
} from "./usage.ts";

export type BreakdownRow = Amounts & {
  /** The dimensions, all null except the one asked for, and the row's day where it is named. */
  readonly grouping: Readonly<Record<string, GroupValue>>;
};

/** One row for each group that used something. A set is shown in the order that was seen first. */
export function breakdownRows(
  records: readonly UsageRecord[],
  query: BreakdownQuery,
  dialect: Dialect,
  day: string,
): BreakdownRow[] {
  const { grouping } = query;
  const groupOf = (record: UsageRecord): GroupValue => (grouping === undefined ? null : (record[grouping] ?? null));
  const matching = records.filter((record) => matchesQuery(record, query, dialect));
  const groups = Map.groupBy(matching, (record) => JSON.stringify(sortedIfSet(groupOf(record))));
  return [...groups.values()].map((group) => {
    const values = USAGE_DIMENSIONS.map((dimension) => {
      const value = dimension === grouping && group[0] ? valueInDialect(groupOf(group[0]), dimension, dialect) : null;
      return [nameIn(dialect, "grouping", dimension), value];
    });
    return { ...sumOf(group), grouping: { start: day, end: day, ...Object.fromEntries(values) } };
  });
}

/** `model` of dialect "interface" is a text if a request used one model; `models` of dialect "2026" is always a list. */
function valueInDialect(value: GroupValue, dimension: UsageDimension, dialect: Dialect): GroupValue {
  if (dimension !== "model" || dialect === "2026" || value === null || typeof value === "string") return value;
  return value.length === 1 ? (value[0] ?? null) : value;
}

// The parameters of a usage breakdown, by the names of a dialect. Nothing is refused: a name that the dialect does not have is taken
// for a feature, and an unknown feature narrows nothing.

type BreakdownQuery = {
  /** Undefined if the request has no grouping, or one that the dialect does not have. */
  readonly grouping: UsageDimension | undefined;
  readonly dimensions: ReadonlyMap<UsageDimension, string>;
  readonly featuresUsed: readonly string[];
  readonly featuresNotUsed: readonly string[];
};

function dimensionCalled(dialect: Dialect, use: "grouping" | "filter", name: string): UsageDimension | undefined {
  return USAGE_DIMENSIONS.find((dimension) => nameIn(dialect, use, dimension) === name);
}

export function parseBreakdownQuery(parameters: URLSearchParams, dialect: Dialect): BreakdownQuery {
  const dimensions = new Map<UsageDimension, string>();
  const features: { name: string; value: string }[] = [];
  for (const [name, value] of parameters) {
    const dimension = dimensionCalled(dialect, "filter", name);
    if (dimension !== undefined) dimensions.set(dimension, value);
    else if (FEATURES.includes(name)) features.push({ name, value });
  }
  const named = (wanted: string) => features.filter(({ value }) => value === wanted).map(({ name }) => name);
  return {
    grouping: dimensionCalled(dialect, "grouping", parameters.get("grouping") ?? ""),
    dimensions,
    featuresUsed: named("true"),
    featuresNotUsed: named("false"),
  };
}

/** Whether the record has any of the features to be used, none of those not to be used, and the value of each dimension. */
function matchesQuery(record: UsageRecord, query: BreakdownQuery, dialect: Dialect): boolean {
  const features = record.feature_set ?? [];
  if (query.featuresUsed.length > 0 && !query.featuresUsed.some((name) => features.includes(name))) return false;
  if (query.featuresNotUsed.some((name) => features.includes(name))) return false;
  return query.dimensions
    .entries()
    .every(([dimension, wanted]) => filterValues(record, dimension, dialect).includes(wanted));
}

/** The filter values that match a record; for a set, each of its members. In dialect "2026" a model matches by its id only. */
function filterValues(record: UsageRecord, dimension: UsageDimension, dialect: Dialect): readonly string[] {
  const values = valuesOf(record[dimension] ?? null);
  return dimension === "model" && dialect === "2026" ? values.map(modelId) : values;
}

// The answer of Get Fields: what was used in a period and can be filtered by.

export function fieldsOf(records: readonly UsageRecord[]): Readonly<Record<string, unknown>> {
  const models = distinct(records.flatMap(({ model }) => model ?? []));
  return {
    tags: distinct(records.flatMap(({ tags }) => tags ?? [])),
    models: models.map((name) => ({ name, language: "en", version: "2026-01-09.0", model_id: modelId(name) })),
    processing_methods: distinct(records.flatMap(({ method }) => method ?? [])),
    features: distinct(records.flatMap(({ feature_set }) => feature_set ?? [])),
  };
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}

// What the service answers about cost. An amount is a whole number of the smallest unit, and is sent with all its digits.

type BillingQuery = {
  readonly groupings: readonly BillingDimension[];
  /** A record matches if it has one of the values of each dimension. */
  readonly filters: readonly (readonly [BillingDimension, readonly string[]])[];
};

/** Groupings and filters may be repeated. As in a usage breakdown, nothing is refused: any other name or grouping is ignored. */
export function parseBillingQuery(parameters: URLSearchParams, dialect: Dialect): BillingQuery {
  const valuesFor = (name: BillingDimension) => parameters.getAll(nameIn(dialect, "filter", name) ?? name);
  const groupings = parameters.getAll("grouping");
  return {
    groupings: BILLING_DIMENSIONS.filter((name) => groupings.includes(name)),
    filters: BILLING_DIMENSIONS.map((name) => [name, valuesFor(name)] as const).filter(([, { length }]) => length > 0),
  };
}

/** One row for each group that cost something on the day. The dimensions that were not asked for are null. */
export function billingBreakdown(day: string, records: readonly UsageRecord[], { groupings, filters }: BillingQuery) {
  const matching = records
    .map(billedOf)
    .filter((cost) => filters.every(([name, wanted]) => valuesOf(cost[name]).some((value) => wanted.includes(value))));
  const groups = Map.groupBy(matching, (cost) => JSON.stringify(groupings.map((name) => sortedIfSet(cost[name]))));
  return [...groups.values()].map((group) => {
    const values = BILLING_DIMENSIONS.map((name) => [name, groupings.includes(name) ? group[0]?.[name] : null]);
    const dollars = jsonNumber(group.reduce((sum, cost) => sum + cost.dollars, 0n));
    return { dollars, grouping: { start: day, end: day, ...Object.fromEntries(values) } };
  });
}

/** What cost something, and can be filtered by. A line item is listed with a name for people, which is its own here. */
export function billingFields(records: readonly UsageRecord[]): Readonly<Record<string, unknown>> {
  const costs = records.map(billedOf);
  const valuesIn = (name: BillingDimension) => distinct(costs.flatMap((cost) => valuesOf(cost[name])));
  return {
    accessors: valuesIn("accessor"),
    deployments: valuesIn("deployment"),
    tags: valuesIn("tags"),
    line_items: Object.fromEntries(valuesIn("line_item").map((name) => [name, name])),
  };
}

const GRANTED = "25000";

/** One prepaid balance: what was granted, less what the records cost. */
export function balances(projectId: string, records: readonly UsageRecord[]): Readonly<Record<string, unknown>> {
  const spent = records.reduce((sum, record) => sum + billedOf(record).dollars, 0n);
  const balance = {
    balance_id: uuidFrom("balance", projectId),
    amount: jsonNumber(smallestUnits(GRANTED) - spent),
    units: "usd",
    purchase_order_id: uuidFrom("purchase order", projectId),
  };
  return { balances: [balance] };
}

/** What a record costs, and which groups it is of. `dollars` is in the smallest unit. */
type Billed = Readonly<Record<BillingDimension, GroupValue>> & { readonly dollars: bigint };

function billedOf(record: UsageRecord): Billed {
  const lineItem = record.line_item === undefined ? lineItemOf(record) : record.line_item;
  const dollars = record.dollars === undefined ? priceOf(record, lineItem) : smallestUnits(record.dollars);
  const groups = BILLING_DIMENSIONS.map((name) => [name, name === "line_item" ? lineItem : (record[name] ?? null)]);
  return { ...(Object.fromEntries(groups) as Readonly<Record<BillingDimension, GroupValue>>), dollars };
}

function valuesOf(value: GroupValue): readonly string[] {
  return value === null ? [] : typeof value === "string" ? [value] : value;
}

// Line items and prices. A line item reads `method::model`, where all voices of a generation are one model; some have no method.

/** Null if the record does not say what was used. */
function lineItemOf({ endpoint, method, model }: UsageRecord): string | null {
  const [name, ...others] = model ?? [];
  if (endpoint === "agent" || others.length > 0) return "streaming::voice-agent";
  if (name === undefined) return endpoint === "read" ? "text-intelligence" : null;
  return `${method ?? "sync"}::${name.replace(/^(aura(?:-\d+)?)-.*$/, "$1")}`;
}

/** Dollars for one unit of the metric. The discount of a contract gives them more digits than a double has. */
const PRICES: Readonly<Record<string, { readonly metric: keyof Amounts; readonly price: string }>> = {
  "nova-3": { metric: "hours", price: "0.404962866" },
  "nova-2": { metric: "hours", price: "0.226148094" },
  "aura-2": { metric: "tts_characters", price: "0.00002629629" },
  aura: { metric: "tts_characters", price: "0.000013148145" },
  "voice-agent": { metric: "agent_hours", price: "3.9444435" },
  "text-intelligence": { metric: "tokens_in", price: "0.0000002629629" },
};
const OTHER_PRICE = { metric: "hours", price: "0.5259258" } as const;

function priceOf(record: UsageRecord, lineItem: string | null): bigint {
  const [method, model = method] = lineItem?.split("::") ?? [];
  const { metric, price } = PRICES[model ?? ""] ?? OTHER_PRICE;
  // A quantity has at most six decimals.
  return (BigInt(Math.round((record[metric] ?? 0) * 1e6)) * smallestUnits(price)) / 1_000_000n;
}

// Exact amounts, as whole numbers of 10^-DECIMALS.

const DECIMALS = 40;

function smallestUnits(text: string): bigint {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === "" || fraction.length > DECIMALS) {
    throw new Error(`expected a decimal number with at most ${DECIMALS} decimals, got ${text}`);
  }
  return BigInt(`${sign}${whole}${fraction.padEnd(DECIMALS, "0")}`);
}

// TypeScript's library does not declare it yet.
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

/** Written with all its digits, which a double may not have. */
function jsonNumber(amount: bigint): object {
  const digits = String(amount < 0n ? -amount : amount).padStart(DECIMALS + 1, "0");
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, "");
  const text = `${digits.slice(0, -DECIMALS)}${fraction === "" ? "" : `.${fraction}`}`;
  return JSON.rawJSON(amount < 0n ? `-${text}` : text);
}
