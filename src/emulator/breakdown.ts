// What the service answers about usage: the breakdown (parameters read, records filtered, grouped and added up) and Get Fields. Pure.

import { type Dialect, type UsageDimension as Dimension, nameIn, USAGE_DIMENSIONS } from "../usage/dimensions.ts";
import { type Amounts, FEATURES, type GroupValue, modelId, sortedIfSet, sumOf, type UsageRecord } from "./usage.ts";

export type BreakdownRow = Amounts & {
  /** The dimensions, all null except the one asked for, and the row's day where it is named. */
  readonly grouping: Readonly<Record<string, GroupValue>>;
};

/** One row for each group that used something. */
export function breakdownRows(
  records: readonly UsageRecord[],
  query: BreakdownQuery,
  dialect: Dialect,
  day: string,
): BreakdownRow[] {
  const matching = records.filter((record) => matchesQuery(record, query, dialect));
  return groupsOf(matching, query.grouping).map((group) => ({
    ...sumOf(group.records),
    grouping: {
      ...{ start: day, end: day },
      ...Object.fromEntries(
        USAGE_DIMENSIONS.map((dimension) => [
          nameIn(dialect, "grouping", dimension),
          dimension === query.grouping ? valueInDialect(group.value, dimension, dialect) : null,
        ]),
      ),
    },
  }));
}

type RecordGroup = { readonly value: GroupValue; readonly records: UsageRecord[] };

/** A set is shown in the order that was seen first. */
function groupsOf(records: readonly UsageRecord[], grouping: Dimension | undefined): RecordGroup[] {
  const groups = new Map<string, RecordGroup>();
  for (const record of records) {
    const value: GroupValue = grouping === undefined ? null : (record[grouping] ?? null);
    const key = JSON.stringify(sortedIfSet(value));
    const group = groups.get(key);
    if (group) group.records.push(record);
    else groups.set(key, { value, records: [record] });
  }
  return [...groups.values()];
}

/** `model` of dialect "interface" is a text if a request used one model; `models` of dialect "2026" is always a list. */
function valueInDialect(value: GroupValue, dimension: Dimension, dialect: Dialect): GroupValue {
  if (dimension !== "model" || dialect === "2026" || value === null || typeof value === "string") return value;
  return value.length === 1 ? (value[0] ?? null) : value;
}

// The parameters of a usage breakdown, by the names of a dialect. Nothing is refused: a name that the dialect does not have is taken
// for a feature, and an unknown feature narrows nothing.

export type BreakdownQuery = {
  /** Undefined if the request has no grouping, or one that the dialect does not have. */
  readonly grouping: Dimension | undefined;
  readonly dimensions: ReadonlyMap<Dimension, string>;
  readonly featuresUsed: readonly string[];
  readonly featuresNotUsed: readonly string[];
};

function dimensionCalled(dialect: Dialect, use: "grouping" | "filter", name: string): Dimension | undefined {
  return USAGE_DIMENSIONS.find((dimension) => nameIn(dialect, use, dimension) === name);
}

export function parseBreakdownQuery(parameters: URLSearchParams, dialect: Dialect): BreakdownQuery {
  const dimensions = new Map<Dimension, string>();
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
function filterValues(record: UsageRecord, dimension: Dimension, dialect: Dialect): readonly string[] {
  const value: GroupValue = record[dimension] ?? null;
  const values = value === null ? [] : typeof value === "string" ? [value] : value;
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
