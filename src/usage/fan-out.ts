// Fan-out filters: each value of a dimension that was seen in stored usage is a filter. Pure.

import type { Window } from "./days.ts";
import type { Dimension, EachDimension } from "./dimensions.ts";
import type { Filter, Grouping, Project, Series } from "./series.ts";

export type FanOut = {
  readonly dimension: EachDimension;
  /** Of each project, only so many values are read: those with the most requests. */
  readonly atMost: number;
};

/** The values of one dimension that were seen in one project. */
export type SeenValues = {
  readonly dimension: Dimension;
  readonly values: readonly SeenValue[];
  /** How many further values were seen and are not read. */
  readonly leftOut: number;
};

export type SeenValue = {
  readonly filter: Filter;
  /**
   * From the first day of the window on which the value was seen to the newest day that was read by the dimension. Undefined if it was
   * seen only on other days, which a person asks for.
   */
  readonly days: Window | undefined;
};

/** By project id. */
export type Seen = ReadonlyMap<string, readonly SeenValues[]>;

/** The filter for one value of a dimension. */
export function seenFilter(dimension: Dimension, value: string): Filter {
  return { name: `${dimension}=${value}`, features: {}, dimensions: { [dimension]: value }, isSeen: true };
}

/** The name that selects every value of a fan-out, as the name of its filter selects one. */
export function everyValue(dimension: Dimension): string {
  return `${dimension}=*`;
}

/** Whether the name selects every value of one of the fan-outs, or may be that of one value. */
export function namesFanOut(fanOuts: readonly FanOut[], name: string): boolean {
  return fanOuts.some(({ dimension }) => name.startsWith(`${dimension}=`));
}

/** Usage by the dimension itself has the ungrouped numbers of each value already. */
export function isReadUnderEach(grouping: string, dimension: Dimension): boolean {
  return grouping !== "none" && grouping !== dimension;
}

/** The series of the values that were seen in the project. `names` selects filters. */
export function seenSeries(
  { seen }: { readonly seen?: Seen },
  project: Project,
  groupings: readonly Grouping[],
  names: readonly string[] | undefined,
): Series[] {
  return (seen?.get(project.id) ?? []).flatMap(({ dimension, values }) => {
    const read = groupings.filter((grouping) => isReadUnderEach(grouping, dimension));
    return values
      .filter(({ filter }) => !names || names.includes(filter.name) || names.includes(everyValue(dimension)))
      .flatMap(({ filter }) => read.map((grouping) => ({ project, source: "usage" as const, grouping, filter })));
  });
}

/** The days on which the value of a series was seen; undefined if it is no such series. */
export function seenDays({ seen }: { readonly seen?: Seen }, { project, filter }: Series): Window | undefined {
  const values = seen?.get(project.id)?.flatMap((one) => one.values) ?? [];
  return values.find((value) => value.filter === filter)?.days;
}
