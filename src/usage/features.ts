// Decides what Get Fields' answer means for the filters of a job. Pure.

import type { Filter } from "./series.ts";

/** The filter's features that the service does not know; none where it does not say which it knows. */
export function unknownFeatures(filter: Filter, known: readonly string[] | undefined): string[] {
  if (!known) return [];
  return Object.keys(filter.features).filter((feature) => !known.includes(feature));
}
