// Reads the parameters of a usage breakdown by the names of a dialect. Nothing is refused: a name that the dialect does
// not have is taken for a feature, and a feature that nobody knows narrows nothing. Pure.

import { FEATURES, modelId } from "./catalogue.ts";
import type { Dimension, GroupValue, UsageRecord } from "./usage-record.ts";

export const DIALECTS = ["interface", "2026"] as const;
export type Dialect = (typeof DIALECTS)[number];

export type BreakdownQuery = {
  /** Undefined without a grouping, and for one that the dialect does not have. */
  readonly grouping: Dimension | undefined;
  readonly dimensions: ReadonlyMap<Dimension, string>;
  readonly featuresUsed: readonly string[];
  readonly featuresNotUsed: readonly string[];
};

type Names = ReadonlyMap<string, Dimension>;

const COMMON_GROUPINGS = ["accessor", "deployment", "endpoint", "feature_set", "method", "tags"] as const;
const COMMON_FILTERS = ["accessor", "deployment", "endpoint", "method", "model"] as const;

const GROUPINGS: Readonly<Record<Dialect, Names>> = {
  interface: names(COMMON_GROUPINGS, { model: "model" }),
  "2026": names(COMMON_GROUPINGS, { models: "model" }),
};

const FILTERS: Readonly<Record<Dialect, Names>> = {
  interface: names(COMMON_FILTERS, { feature_set: "feature_set", tags: "tags" }),
  "2026": names(COMMON_FILTERS, { tag: "tags" }),
};

export function parseBreakdownQuery(parameters: URLSearchParams, dialect: Dialect): BreakdownQuery {
  const dimensions = new Map<Dimension, string>();
  const features: { name: string; value: string }[] = [];
  for (const [name, value] of parameters) {
    const dimension = FILTERS[dialect].get(name);
    if (dimension !== undefined) dimensions.set(dimension, value);
    else if (FEATURES.includes(name)) features.push({ name, value });
  }
  const named = (wanted: string) => features.filter(({ value }) => value === wanted).map(({ name }) => name);
  return {
    grouping: GROUPINGS[dialect].get(parameters.get("grouping") ?? ""),
    dimensions,
    featuresUsed: named("true"),
    featuresNotUsed: named("false"),
  };
}

/** Whether the usage is in the answer: any of the features used, none of those not used, and every dimension's value. */
export function matches(record: UsageRecord, query: BreakdownQuery, dialect: Dialect): boolean {
  const features = record.feature_set ?? [];
  if (query.featuresUsed.length > 0 && !query.featuresUsed.some((name) => features.includes(name))) return false;
  if (query.featuresNotUsed.some((name) => features.includes(name))) return false;
  return query.dimensions
    .entries()
    .every(([dimension, wanted]) => filterValues(record, dimension, dialect).includes(wanted));
}

/** The texts by which usage is found; of a set, each of its members. In 2026 a model is found by its id only. */
function filterValues(record: UsageRecord, dimension: Dimension, dialect: Dialect): readonly string[] {
  const value: GroupValue = record[dimension] ?? null;
  const values = value === null ? [] : typeof value === "string" ? [value] : value;
  return dimension === "model" && dialect === "2026" ? values.map(modelId) : values;
}

function names(common: readonly Dimension[], own: Readonly<Record<string, Dimension>>): Names {
  return new Map([...common.map((name): [string, Dimension] => [name, name]), ...Object.entries(own)]);
}
