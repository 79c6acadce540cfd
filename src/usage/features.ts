// Decides what the known names of the service mean for the filters of a job. Pure.

import { DIMENSION_VALUES, DIMENSIONS, type Dimension, type Filter } from "./series.ts";

/** The filter's features that are not known. */
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
