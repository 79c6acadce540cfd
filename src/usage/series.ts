// A series is the usage or the cost of one project, by one grouping, under one filter. Numbers of different series are never added up.
// Pure.

import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  DIMENSIONS,
  type Dimension,
  documentedValues,
  type Source,
  USAGE_DIMENSIONS,
} from "./dimensions.ts";

/** The groupings of usage: one dimension. "none" is the ungrouped total. */
export const GROUPINGS = ["none", ...USAGE_DIMENSIONS] as const;
export type UsageGrouping = (typeof GROUPINGS)[number];

type BillingGrouping = "none" | BillingDimension | `${BillingDimension},${string}`;

/** The groupings of billing: any dimensions, in alphabetical order, joined by commas. */
export const BILLING_GROUPINGS = ["none", ...subsetsOf(BILLING_DIMENSIONS)] as readonly BillingGrouping[];

export type Grouping = UsageGrouping | BillingGrouping;

function subsetsOf([first, ...rest]: readonly string[]): string[] {
  if (first === undefined) return [];
  const others = subsetsOf(rest);
  return [first, ...others.map((other) => `${first},${other}`), ...others];
}

/** The groupings of either source, each once. */
const ALL_GROUPINGS: ReadonlySet<string> = new Set([...GROUPINGS, ...BILLING_GROUPINGS]);

/** The grouping by these dimensions in whatever order; undefined if no source has it. */
export function groupingBy(dimensions: readonly string[]): Grouping | undefined {
  const grouping = [...dimensions].sort().join(",");
  return isGrouping(grouping) ? grouping : undefined;
}

function isGrouping(text: string): text is Grouping {
  return ALL_GROUPINGS.has(text);
}

const DIMENSIONS_BY_GROUPING = new Map<string, readonly Dimension[]>(
  [...ALL_GROUPINGS].map((grouping) => [grouping, DIMENSIONS.filter((one) => grouping.split(",").includes(one))]),
);

/** In alphabetical order; empty for "none". */
export function dimensionsOf(grouping: Grouping): readonly Dimension[] {
  return DIMENSIONS_BY_GROUPING.get(grouping) ?? [];
}

/** A dialect is the set of names for dimensions that a service understands: two versions of its interface differ in them. */
export const DIALECTS = ["interface", "2026"] as const;
export type Dialect = (typeof DIALECTS)[number];

export type Project = { readonly id: string; readonly name: string };

/** A named set of conditions; without conditions it is all usage, whatever its name. */
export type Filter = {
  readonly name: string;
  /** By feature name, the value that is sent, as text such as "true". */
  readonly features: Readonly<Record<string, string>>;
  readonly dimensions: Readonly<Partial<Record<Dimension, string>>>;
  /** Set if its value was seen in stored usage: the service knows it, whatever it lists. */
  readonly isSeen?: true;
};

export const ALL_USAGE: Filter = { name: "all", features: {}, dimensions: {} };

export type Series = {
  readonly project: Project;
  readonly source: Source;
  readonly grouping: Grouping;
  readonly filter: Filter;
};

/** The names of a series for people. */
export type SeriesName = {
  readonly project: string;
  /** Left out where only usage is shown. */
  readonly source?: Source;
  readonly grouping: string;
  readonly filter: string;
};

export function seriesText({ project, source = "usage", grouping, filter }: SeriesName): string {
  return `${project} / ${source === "usage" ? "" : `${source} `}${grouping} / ${filter}`;
}

/** A plan of thousands of projects asks for the key of the same filter very often. */
const FILTER_KEYS = new WeakMap<Filter, string>();

/** The filter's identity: its conditions as canonical JSON. A filter with other conditions is another series. */
export function filterKey(filter: Filter): string {
  const known = FILTER_KEYS.get(filter);
  if (known !== undefined) return known;
  const key = newFilterKey(filter);
  FILTER_KEYS.set(filter, key);
  return key;
}

function newFilterKey(filter: Filter): string {
  const sorted = (record: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
  const { features, dimensions } = filter;
  return JSON.stringify({
    ...(Object.keys(features).length > 0 && { features: sorted(features) }),
    ...(Object.keys(dimensions).length > 0 && { dimensions: sorted(dimensions) }),
  });
}

/** The filterKey of a filter without conditions. */
export const NO_CONDITIONS = "{}";

export function seriesKey(series: Series): string {
  return JSON.stringify([series.source, series.project.id, series.grouping, filterKey(series.filter)]);
}

export type UnlistedValue = {
  readonly dimension: Dimension;
  readonly value: string;
  readonly listed: readonly string[];
};

/** The filter's values that are not in the interface's list, for dimensions that have a list. */
export function unlistedValues({ dimensions }: Pick<Filter, "dimensions">, source: Source): UnlistedValue[] {
  return DIMENSIONS.flatMap((dimension) => {
    const value = dimensions[dimension];
    const listed = documentedValues(dimension, source);
    return value === undefined || listed === undefined || listed.includes(value) ? [] : [{ dimension, value, listed }];
  });
}
