// What the service answers about cost: the billing breakdown, the values it can be filtered by, and balances. All are made from the
// same records as usage. An amount is a whole number of the smallest unit, and is sent with all its digits. Pure.

import { BILLING_DIMENSIONS, type Dialect, type BillingDimension as Dimension, nameIn } from "../usage/dimensions.ts";
import { daysOf, type Window } from "./days.ts";
import { type Amounts, type GroupValue, sortedIfSet, type UsageRecord, uuidFrom } from "./usage.ts";

export type BillingQuery = {
  readonly groupings: readonly Dimension[];
  /** A record matches if it has one of the values of each dimension. */
  readonly filters: ReadonlyMap<Dimension, readonly string[]>;
};

/** Groupings and filters may be repeated. As in a usage breakdown, nothing is refused: any other name or grouping is ignored. */
export function parseBillingQuery(parameters: URLSearchParams, dialect: Dialect): BillingQuery {
  const named = (name: Dimension) => nameIn(dialect, "filter", name) ?? name;
  const groupings = parameters.getAll("grouping");
  return {
    groupings: BILLING_DIMENSIONS.filter((dimension) => groupings.includes(dimension)),
    filters: new Map(
      BILLING_DIMENSIONS.map((dimension) => [dimension, parameters.getAll(named(dimension))] as const).filter(
        ([, values]) => values.length > 0,
      ),
    ),
  };
}

/** One row for each day of the window and each group that cost something on it. The dimensions that were not asked for are null. */
export function billingBreakdown(
  window: Window,
  usageOn: (day: string) => readonly UsageRecord[],
  { groupings, filters }: BillingQuery,
): Readonly<Record<string, unknown>> {
  const results = daysOf(window).flatMap((day) => {
    const matching = usageOn(day)
      .map(billedOf)
      .filter((cost) => filters.entries().every(([name, wanted]) => valuesOf(cost[name]).some(isIn(wanted))));
    const days = { start: day, end: day };
    return [...Map.groupBy(matching, (cost) => groupKey(cost, groupings)).values()].map((group) => {
      const dollars = jsonNumber(group.reduce((sum, cost) => sum + cost.dollars, 0n));
      const values = BILLING_DIMENSIONS.map((name) => [
        name,
        groupings.includes(name) ? (group[0]?.[name] ?? null) : null,
      ]);
      const grouping = Object.fromEntries(values);
      return { dollars, grouping: { ...days, ...grouping } };
    });
  });
  return { ...window, resolution: { units: "day", amount: 1 }, results };
}

/** What cost something, and can be filtered by. A line item is listed with a name for people, which is its own here. */
export function billingFields(records: readonly UsageRecord[]): Readonly<Record<string, unknown>> {
  const costs = records.map(billedOf);
  const distinct = (name: Dimension) => [...new Set(costs.flatMap((cost) => valuesOf(cost[name])))].sort();
  return {
    accessors: distinct("accessor"),
    deployments: distinct("deployment"),
    tags: distinct("tags"),
    line_items: Object.fromEntries(distinct("line_item").map((name) => [name, name])),
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
type Billed = Readonly<Record<Dimension, GroupValue>> & { readonly dollars: bigint };

function billedOf(record: UsageRecord): Billed {
  const lineItem = record.line_item === undefined ? lineItemOf(record) : record.line_item;
  const dollars = record.dollars === undefined ? priceOf(record, lineItem) : smallestUnits(record.dollars);
  const groups = BILLING_DIMENSIONS.map((name) => [name, name === "line_item" ? lineItem : (record[name] ?? null)]);
  return { ...(Object.fromEntries(groups) as Readonly<Record<Dimension, GroupValue>>), dollars };
}

function valuesOf(value: GroupValue): readonly string[] {
  return value === null ? [] : typeof value === "string" ? [value] : value;
}

function isIn(wanted: readonly string[]): (value: string) => boolean {
  return (value) => wanted.includes(value);
}

function groupKey(cost: Billed, groupings: readonly Dimension[]): string {
  return JSON.stringify(groupings.map((name) => sortedIfSet(cost[name])));
}

// Line items and prices. A line item reads `method::model`, where all voices of a generation are one model; some have no method.

/** Null if the record does not say what was used. */
function lineItemOf({ endpoint, method, model }: UsageRecord): string | null {
  const [name, ...others] = model ?? [];
  if (endpoint === "agent" || others.length > 0) return "streaming::voice-agent";
  if (name === undefined) return endpoint === "read" ? "text-intelligence" : null;
  return `${method ?? "sync"}::${name.replace(/^(aura(?:-\d+)?)-.*$/, "$1")}`;
}

/** Dollars for one unit of the metric, before the discount. `streaming` is the price of a line item with that method. */
type Price = { readonly metric: keyof Amounts; readonly price: string; readonly streaming?: string };

const PRICES: Readonly<Record<string, Price>> = {
  "nova-3": { metric: "hours", price: "0.258", streaming: "0.462" },
  "nova-3-medical": { metric: "hours", price: "0.312", streaming: "0.552" },
  "nova-2": { metric: "hours", price: "0.258", streaming: "0.348" },
  enhanced: { metric: "hours", price: "0.87", streaming: "0.99" },
  "whisper-large": { metric: "hours", price: "0.288" },
  "aura-2": { metric: "tts_characters", price: "0.00003" },
  aura: { metric: "tts_characters", price: "0.000015" },
  "voice-agent": { metric: "agent_hours", price: "4.5" },
  "text-intelligence": { metric: "tokens_in", price: "0.0000003" },
};
const OTHER_PRICE: Price = { metric: "hours", price: "0.6" };

/** What is left of a price after the discount of the contract. It gives amounts more digits than a double has. */
const DISCOUNTED = "0.876543";

function priceOf(record: UsageRecord, lineItem: string | null): bigint {
  const [method, model = method] = lineItem?.split("::") ?? [];
  const { metric, price, streaming = price } = PRICES[model ?? ""] ?? OTHER_PRICE;
  const quantity = BigInt(Math.round((record[metric] ?? 0) * QUANTITY_UNITS)) * (UNIT / BigInt(QUANTITY_UNITS));
  return product(
    product(quantity, smallestUnits(method === "streaming" ? streaming : price)),
    smallestUnits(DISCOUNTED),
  );
}

// Exact amounts, as whole numbers of 10^-DECIMALS.

const DECIMALS = 40;
const UNIT = 10n ** BigInt(DECIMALS);
/** Quantities have at most six decimals. */
const QUANTITY_UNITS = 1e6;

function smallestUnits(text: string): bigint {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === "" || fraction.length > DECIMALS) {
    throw new Error(`expected a decimal number with at most ${DECIMALS} decimals, got ${text}`);
  }
  return BigInt(`${sign}${whole}${fraction.padEnd(DECIMALS, "0")}`);
}

function product(a: bigint, b: bigint): bigint {
  return (a * b) / UNIT;
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
