// A series is the usage of one project, by one grouping, under one filter. Numbers of different series are never added up. This file
// also has the names that groupings and filters may use. Pure.

/** The dimensions, by their names in the dialect "interface". Another dialect may send other names. */
export const DIMENSIONS = ["accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/** "none" is the ungrouped total. */
export const GROUPINGS = ["none", ...DIMENSIONS] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** The values that the service's published interface lists for a dimension. Values of other dimensions are free text. */
export const DIMENSION_VALUES: Readonly<Partial<Record<Dimension, readonly string[]>>> = {
  deployment: ["self-hosted", "hosted", "beta"],
  endpoint: ["listen", "speak", "agent", "read"],
  method: ["sync", "async", "streaming"],
};

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

export type Series = { readonly project: Project; readonly grouping: Grouping; readonly filter: Filter };

/** The names of a series for people. */
export type SeriesName = { readonly project: string; readonly grouping: string; readonly filter: string };

export function seriesText({ project, grouping, filter }: SeriesName): string {
  return `${project} / ${grouping} / ${filter}`;
}

/** The filter's identity: its conditions as canonical JSON. A filter with other conditions is another series. */
export function filterKey(filter: Filter): string {
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
  return JSON.stringify([series.project.id, series.grouping, filterKey(series.filter)]);
}

export function unknownFeatures(filter: Filter, known: readonly string[]): string[] {
  return Object.keys(filter.features).filter((feature) => !known.includes(feature));
}

export type UnlistedValue = {
  readonly dimension: Dimension;
  readonly value: string;
  readonly listed: readonly string[];
};

/** The filter's values that are not in the interface's list, for dimensions that have a list. */
export function unlistedValues({ dimensions }: Pick<Filter, "dimensions">): UnlistedValue[] {
  return DIMENSIONS.flatMap((dimension) => {
    const value = dimensions[dimension];
    const listed = DIMENSION_VALUES[dimension];
    return value === undefined || listed === undefined || listed.includes(value) ? [] : [{ dimension, value, listed }];
  });
}
