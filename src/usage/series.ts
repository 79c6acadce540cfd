// A series is the usage or the cost of one project, by one grouping, under one filter. Numbers of different series are never added up.
// This file also has the names that groupings and filters may use. Pure.

/** Where the numbers of a series come from: the service's usage breakdown, or its billing breakdown. */
export const SOURCES = ["usage", "billing"] as const;
export type Source = (typeof SOURCES)[number];

/** The dimensions of both sources, by their names in the dialect "interface". Another dialect may send other names. */
export const DIMENSIONS = [
  "accessor",
  "deployment",
  "endpoint",
  "feature_set",
  "line_item",
  "method",
  "model",
  "tags",
] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export const USAGE_DIMENSIONS = [
  "accessor",
  "deployment",
  "endpoint",
  "feature_set",
  "method",
  "model",
  "tags",
] as const;
export const BILLING_DIMENSIONS = ["accessor", "deployment", "line_item", "tags"] as const;
export type BillingDimension = (typeof BILLING_DIMENSIONS)[number];
export const DIMENSIONS_OF: Readonly<Record<Source, readonly Dimension[]>> = {
  usage: USAGE_DIMENSIONS,
  billing: BILLING_DIMENSIONS,
};

/** The groupings of usage: one dimension. "none" is the ungrouped total. */
export const GROUPINGS = ["none", ...USAGE_DIMENSIONS] as const;
export type UsageGrouping = (typeof GROUPINGS)[number];

type Subset<T extends readonly string[]> = T extends readonly [
  infer First extends string,
  ...infer Rest extends string[],
]
  ? First | Subset<Rest> | `${First},${Subset<Rest>}`
  : never;
type BillingGrouping = "none" | Subset<typeof BILLING_DIMENSIONS>;

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

/** The values that the service's published interface lists for a dimension. Values of other dimensions are free text. */
export const DIMENSION_VALUES: Readonly<Partial<Record<Dimension, readonly string[]>>> = {
  deployment: ["self-hosted", "hosted", "beta"],
  endpoint: ["listen", "speak", "agent", "read"],
  method: ["sync", "async", "streaming"],
};

const BILLING_VALUES: typeof DIMENSION_VALUES = { deployment: ["self-hosted", "hosted", "beta", "dedicated"] };

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

export function documentedValues(dimension: Dimension, source: Source): readonly string[] | undefined {
  return (source === "billing" ? BILLING_VALUES : DIMENSION_VALUES)[dimension];
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
