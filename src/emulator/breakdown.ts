// Makes the answers about usage and cost: breakdowns, the values that they can be filtered by, and balances. Pure.

import { DIMENSIONS_OF, type Dialect, type Dimension, filterIn, groupingIn, type Source } from "../usage/dimensions.ts";
import { FEATURES, modelId, sortIfList, sumOf, type UsageAmounts, type UsageRecord, uuidFrom } from "./usage.ts";

/** One row for each group of the day. In a row's `grouping`, dimensions that were not asked for are null. Unknown groupings are ignored. */
export function breakdownRows(
  records: readonly UsageRecord[],
  day: string,
  parameters: URLSearchParams,
  source: Source,
  dialect: Dialect,
): readonly object[] {
  // Usage can be grouped by one dimension at a time, billing by several.
  const asked = parameters.getAll("grouping").slice(0, source === "usage" ? 1 : undefined);
  const groupings = DIMENSIONS_OF[source].filter((name) => asked.includes(groupingIn(dialect, name)));
  const all = source === "billing" ? records.map(billed) : records;
  const matching = all.filter(matcherOf(parameters, source, dialect));
  const keyOf = (record: UsageRecord) => JSON.stringify(groupings.map((name) => sortIfList(record[name] ?? null)));
  return [...Map.groupBy(matching, keyOf).values()].map((group) => {
    const values = DIMENSIONS_OF[source].map((name) => {
      const value = groupings.includes(name) ? (group[0]?.[name] ?? null) : null;
      // In dialect "interface", `model` is a text if a request used one model. In "2026", `models` is always a list.
      const isOneModel =
        name === "model" && dialect === "interface" && typeof value === "object" && value?.length === 1;
      return [groupingIn(dialect, name), isOneModel ? value[0] : value];
    });
    const amounts = source === "billing" ? { dollars: JSON.rawJSON(decimal(totalUnits(group))) } : sumOf(group);
    return { ...amounts, grouping: { start: day, end: day, ...Object.fromEntries(values) } };
  });
}

/** Features that are "true" are joined with OR, all other conditions with AND. An unknown feature narrows nothing. */
function matcherOf(parameters: URLSearchParams, source: Source, dialect: Dialect): (record: UsageRecord) => boolean {
  const featuresThatAre = (value: string) =>
    source === "usage" ? FEATURES.filter((name) => parameters.getAll(name).includes(value)) : [];
  const [used, notUsed] = [featuresThatAre("true"), featuresThatAre("false")];
  return (record) => {
    const features = record.feature_set ?? [];
    if (used.length > 0 && !used.some((name) => features.includes(name))) return false;
    if (notUsed.some((name) => features.includes(name))) return false;
    return DIMENSIONS_OF[source].every((name) => {
      const wanted = parameters.getAll(filterIn(dialect, name) ?? "");
      if (wanted.length === 0) return true;
      // In dialect "2026" a model matches by its id only.
      const filterValue = (value: string) => (name === "model" && dialect === "2026" ? modelId(value) : value);
      return [record[name] ?? []].flat().some((value) => wanted.includes(filterValue(value)));
    });
  };
}

// The answers of Get Fields: what was used in a period and can be filtered by.

export function usageFields(records: readonly UsageRecord[]) {
  const models = valuesIn(records, "model");
  return {
    tags: valuesIn(records, "tags"),
    models: models.map((name) => ({ name, language: "en", version: "2026-01-09.0", model_id: modelId(name) })),
    processing_methods: valuesIn(records, "method"),
    features: valuesIn(records, "feature_set"),
  };
}

export function billingFields(records: readonly UsageRecord[]) {
  const costs = records.map(billed);
  return {
    accessors: valuesIn(costs, "accessor"),
    deployments: valuesIn(costs, "deployment"),
    tags: valuesIn(costs, "tags"),
    line_items: Object.fromEntries(valuesIn(costs, "line_item").map((name) => [name, labelOf(name)])),
  };
}

/** "streaming::nova-3" is "Nova - 3 (Stream)". */
function labelOf(lineItem: string): string {
  const [method = "", name = ""] = lineItem.includes("::") ? lineItem.split("::") : ["", lineItem];
  const capitalised = name.split("-").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return capitalised.join(" - ") + ({ streaming: " (Stream)", sync: " (Batch)" }[method] ?? "");
}

function valuesIn(records: readonly UsageRecord[], name: Dimension): string[] {
  return [...new Set(records.flatMap((record) => [record[name] ?? []].flat()))].sort();
}

// Cost. A line item is called `method::model`, or only `model`. All voices of one generation count as one model.

const GRANTED_DOLLARS = "25000";

/** One prepaid balance: what was granted, less what the records cost. */
export function balances(projectId: string, records: readonly UsageRecord[]) {
  const amount = JSON.rawJSON(decimal(toUnits(GRANTED_DOLLARS) - totalUnits(records.map(billed))));
  const ids = { balance_id: uuidFrom("balance", projectId), purchase_order_id: uuidFrom("purchase order", projectId) };
  return { balances: [{ ...ids, amount, units: "usd" }] };
}

function totalUnits(records: readonly UsageRecord[]): bigint {
  return records.reduce((sum, { dollars = "0" }) => sum + toUnits(dollars), 0n);
}

function billed(record: UsageRecord): UsageRecord {
  const { line_item = lineItemOf(record), dollars = costOf(record, line_item) } = record;
  return { ...record, line_item, dollars };
}

/** Null if the record does not say what was used. Only a voice agent uses several models. */
function lineItemOf({ endpoint, method, model }: UsageRecord): string | null {
  const [name, ...others] = model ?? [];
  if (endpoint === "agent" || others.length > 0) return "streaming::voice-agent";
  if (name === undefined) return endpoint === "read" ? "text-intelligence" : null;
  return `${method ?? "sync"}::${name.replace(/^(aura(?:-\d+)?)-.*$/, "$1")}`;
}

/** Dollars for one unit of the metric. The prices have many digits, so that a double can't hold some of the amounts. */
const PRICES: Readonly<Record<string, { readonly metric: keyof UsageAmounts; readonly price: string }>> = {
  "nova-3": { metric: "hours", price: "0.404962866" },
  "nova-2": { metric: "hours", price: "0.226148094" },
  "aura-2": { metric: "tts_characters", price: "0.00002629629" },
  aura: { metric: "tts_characters", price: "0.000013148145" },
  "voice-agent": { metric: "agent_hours", price: "3.9444435" },
  "text-intelligence": { metric: "tokens_in", price: "0.0000002629629" },
};
const OTHER_PRICE = { metric: "hours", price: "0.5259258" } as const;

function costOf(record: UsageRecord, lineItem: string | null): string {
  const [methodOrModel, model = methodOrModel] = lineItem?.split("::") ?? [];
  const { metric, price } = PRICES[model ?? ""] ?? OTHER_PRICE;
  // A quantity has at most six decimals.
  return decimal((BigInt(Math.round((record[metric] ?? 0) * 1e6)) * toUnits(price)) / 1_000_000n);
}

// Exact amounts in dollars, as whole numbers of units of 10^-DECIMALS.

const DECIMALS = 40;

function toUnits(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(DECIMALS, "0"));
}

function decimal(amount: bigint): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(DECIMALS + 1, "0");
  const text = `${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`.replace(/\.?0+$/, "");
  return `${amount < 0n ? "-" : ""}${text}`;
}

// TypeScript's library does not declare it yet.
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}
