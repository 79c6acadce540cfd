// The schema of the price book, and the check that no usage has two prices. Pure.

import { z } from "zod";
import { documentedValues } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { overlappingPrices, type PRICE_DIMENSIONS, PRICE_VOLUMES, PRICED_TIMES, type Price } from "../usage/prices.ts";
import { Currency, Day, Decimal, FilePath, isGreater, object, reporting, reportingIssues, text } from "./fields.ts";
import type { Path } from "./json.ts";
import { type ConfigIssue, describeValue, formatPath, quoteAll } from "./messages.ts";
import { didYouMean } from "./suggestions.ts";

function digitsOf(currency: string): number {
  return new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

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
  above: Decimal.describe("The quantity of the month after which the tier begins, in the unit of the metric."),
  price: Decimal.describe("The price of what is above it."),
});

const WrittenPrice = object({
  metric: z.enum(METRICS).describe("The metric that is paid for."),
  model: Model.describe(
    'The model: a name; the beginning of names, such as "nova-*"; "*" for any usage; a list for requests that use just these models at once.',
  ),
  endpoint: conditionOn("endpoint").describe(
    "Only usage of this endpoint. Needs an export by model with just this filter.",
  ),
  method: conditionOn("method").describe("Only usage by this processing method, in the same way."),
  deployment: conditionOn("deployment").describe("Only usage of this deployment type, in the same way."),
  currency: Currency.describe("The currency, an ISO 4217 code."),
  price: Decimal.nullable().describe(
    "The price, as a number or as text; every digit counts. null: these days have no price, even if one was stored.",
  ),
  per: Per.prefault(1).describe("How much the price is for: a power of ten, or a unit of time for a metric in hours."),
  from: Day.describe("The first day the price is valid for, in UTC."),
  until: Day.exactOptional().describe("The last day. Left out: until the next price of the same usage."),
  tiers: z
    .array(Tier)
    .prefault([])
    .describe("Other prices for what a calendar month has above a quantity; what is below keeps its price."),
  minimum: Decimal.exactOptional().describe("What a calendar month with such usage costs at least, in the currency."),
  volume: z
    .enum(PRICE_VOLUMES)
    .default("account")
    .describe("Whose quantities count together for tiers and minimum: all projects, or each by itself."),
});

/** Any text: the interface's list may be older than the service. */
function conditionOn(dimension: (typeof PRICE_DIMENSIONS)[number]): z.ZodExactOptional<z.ZodString> {
  return text(256)
    .meta({ examples: [...(documentedValues(dimension, "usage") ?? [])] })
    .exactOptional();
}

type WrittenPrice = z.output<typeof WrittenPrice>;

const PriceEntry = WrittenPrice.superRefine(reportingIssues(problemsOf)).transform(
  ({ endpoint, method, deployment, ...price }): Price => {
    const conditions = { ...(endpoint && { endpoint }), ...(method && { method }), ...(deployment && { deployment }) };
    return { ...price, conditions, digits: digitsOf(price.currency) };
  },
);

/** What one field of a price says about another. */
function problemsOf({ metric, per, price, from, until, tiers }: WrittenPrice): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  if (PRICED_TIMES.includes(per) && !metric.endsWith("hours")) {
    issues.push({
      path: ["per"],
      message: `expected a power of ten, as ${metric} is not measured in time; got "${per}"`,
    });
  }
  if (until !== undefined && until < from) {
    issues.push({ path: ["until"], message: `expected a day not before "from", which is ${from}; got "${until}"` });
  }
  if (price === null && tiers.length > 0) {
    issues.push({ path: ["tiers"], message: 'expected no tiers where "price" is null' });
  }
  for (const [i, { above }] of tiers.entries()) {
    const before = tiers[i - 1]?.above ?? "0";
    if (!isGreater(above, before)) {
      issues.push({
        path: ["tiers", i, "above"],
        message: `expected more than ${before}, each tier above the one before; got ${above}`,
      });
    }
  }
  return issues;
}

export const PriceList = z.array(PriceEntry);

/** The list, or the file that has it. */
export const Prices = z
  .union([PriceList, object({ file: FilePath.describe("A JSON file with a list of prices.") })], {
    error: 'a list of prices, or { "file": "prices.json" }',
  })
  .transform((prices) => ("file" in prices ? { kind: "file" as const, path: prices.file } : prices));

export function overlapIssues(prices: readonly Price[], base: Path): ConfigIssue[] {
  return overlappingPrices(prices).flatMap(({ index, earlier }) => {
    const other = prices[earlier];
    if (!other) return [];
    const message = `prices the same usage as ${formatPath([...base, earlier])} (${describePrice(other)}): usage has one price; end one of them with "until", or give them models, endpoints, methods or deployments that have nothing in common`;
    return [{ path: [...base, index], message }];
  });
}

/** `hours of "nova-3", listen, from 2026-01-01` */
function describePrice({ metric, model, conditions, from }: Price): string {
  const narrowed = Object.values(conditions).map((value) => `, ${value}`);
  return `${metric} of ${model.startsWith("[") ? model : JSON.stringify(model)}${narrowed.join("")}, from ${from}`;
}
