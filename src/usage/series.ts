// A series is the usage or the cost of one project, by one grouping, under one filter. Numbers of different series are never added up. Pure.

import type { Window } from "./days.ts";
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  DIMENSIONS,
  type Dimension,
  type EachDimension,
  type Source,
  USAGE_DIMENSIONS,
} from "./dimensions.ts";

/** "none" is the ungrouped total. */
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

/** The grouping by these dimensions in any order; undefined if no source has it. */
export function groupingBy(dimensions: readonly string[]): Grouping | undefined {
  const wanted = [...dimensions].sort().join(",");
  return [...GROUPINGS, ...BILLING_GROUPINGS].find((grouping) => grouping === wanted);
}

/** In alphabetical order; empty for "none". */
export function dimensionsOf(grouping: Grouping): readonly Dimension[] {
  const names = grouping.split(",");
  return DIMENSIONS.filter((name) => names.includes(name));
}

export type Project = { readonly id: string; readonly name: string };

/** A project that the service has listed at some time. */
export type KnownProject = Project & {
  /** The name of the key that lists it (`keyName` in config/projects.ts). */
  readonly keyName: string;
  /** When it got this name. */
  readonly namedAt: Date;
  /** When a list without it was accepted; null while it is listed, or while lists without it are in doubt. */
  readonly vanishedAt: Date | null;
};

/** A filter without conditions is all usage, whatever its name. */
export type Filter = {
  readonly name: string;
  /** The value that is sent for each feature, as text such as "true". */
  readonly features: Readonly<Record<string, string>>;
  readonly dimensions: Readonly<Partial<Record<Dimension, string>>>;
  /** Given if a fan-out made the filter. Its value comes from stored usage, so the service knows it, even if Get Fields does not list it. */
  readonly seen?: {
    readonly dimension: Dimension;
    /** Due days in the window: from the value's first day to the newest day stored for the dimension. Undefined for values of picked days only. */
    readonly dueDays: Window | undefined;
  };
};

export const ALL_USAGE: Filter = { name: "all", features: {}, dimensions: {} };

export type Series = {
  readonly project: Project;
  readonly source: Source;
  readonly grouping: Grouping;
  readonly filter: Filter;
};

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

/** Remembered, because a plan of thousands of projects asks for the key of each filter very often. */
const FILTER_KEYS = new WeakMap<Filter, string>();

/** The filter's conditions as canonical JSON: a filter with other conditions makes another series. */
export function filterKey(filter: Filter): string {
  const key =
    FILTER_KEYS.get(filter) ??
    JSON.stringify({ features: sortedConditions(filter.features), dimensions: sortedConditions(filter.dimensions) });
  FILTER_KEYS.set(filter, key);
  return key;
}

/** Undefined without conditions, so that JSON leaves them out. */
function sortedConditions(conditions: Readonly<Record<string, string>>) {
  const entries = Object.entries(conditions).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

/** The filterKey of a filter without conditions. */
export const NO_CONDITIONS = "{}";

export function seriesKey(series: Series): string {
  return JSON.stringify([series.source, series.project.id, series.grouping, filterKey(series.filter)]);
}

// Fan-outs: each value of a dimension that was seen in stored usage is a filter.

export type FanOut = {
  readonly dimension: EachDimension;
  /** How many values of each project are read: those with the most requests. */
  readonly atMost: number;
};

export function seenFilter(dimension: Dimension, value: string, dueDays?: Window): Filter {
  const dimensions = { [dimension]: value };
  return { name: `${dimension}=${value}`, features: {}, dimensions, seen: { dimension, dueDays } };
}

/** The name that selects the filters of all values of a fan-out. */
export function everyValueName(dimension: Dimension): string {
  return `${dimension}=*`;
}
