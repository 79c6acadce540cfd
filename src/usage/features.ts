// Decides what the names that the service knows mean for the filters of a job. Pure.

import type { Filter } from "./series.ts";

/** The filter's features that are not among those known. */
export function unknownFeatures(filter: Filter, known: readonly string[]): string[] {
  return Object.keys(filter.features).filter((feature) => !known.includes(feature));
}
