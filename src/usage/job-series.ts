// Which series an export reads, as a question instead of a list: thousands of projects have tens of thousands of series. Pure.

import { type FanOut, isReadUnderEach } from "./fan-out.ts";
import type { ExportJob } from "./plan.ts";
import { filterKey } from "./series.ts";

export type JobSeries = {
  /** `key` is a seriesKey. Of a fan-out's filters each value counts, whenever it was seen. */
  readonly has: (key: string) => boolean;
  /** Whether a series is read by both. */
  readonly overlaps: (other: JobSeries) => boolean;
  /** Undefined for no series. */
  readonly parts?: SeriesParts;
};

/** The series of an export are every combination of these. */
type SeriesParts = {
  readonly source: string;
  readonly projectIds: ReadonlySet<string>;
  readonly groupings: ReadonlySet<string>;
  readonly filterKeys: ReadonlySet<string>;
  readonly fanOuts: readonly FanOut[];
};

export const NO_SERIES: JobSeries = { has: () => false, overlaps: () => false };

export function jobSeries({ source, projects, groupings, filters, fanOuts = [] }: ExportJob): JobSeries {
  const parts: SeriesParts = {
    source,
    projectIds: new Set(projects.map(({ id }) => id)),
    groupings: new Set(groupings),
    filterKeys: new Set(filters.map(filterKey)),
    fanOuts,
  };
  return {
    has(key) {
      const [itsSource, projectId, grouping, conditions] = JSON.parse(key);
      return (
        itsSource === source &&
        parts.projectIds.has(projectId) &&
        parts.groupings.has(grouping) &&
        readsFilter(parts, grouping, conditions)
      );
    },
    overlaps: (other) => other.parts !== undefined && overlap(parts, other.parts),
    parts,
  };
}

function readsFilter({ filterKeys, fanOuts }: SeriesParts, grouping: string, key: string): boolean {
  if (filterKeys.has(key)) return true;
  if (fanOuts.length === 0) return false;
  const { features, dimensions = {} } = JSON.parse(key);
  const [dimension, ...others] = Object.keys(dimensions);
  if (features !== undefined || others.length > 0) return false;
  return fanOuts.some((one) => one.dimension === dimension && isReadUnderEach(grouping, one.dimension));
}

function overlap(a: SeriesParts, b: SeriesParts): boolean {
  if (a.source !== b.source || a.projectIds.isDisjointFrom(b.projectIds)) return false;
  return [...a.groupings.intersection(b.groupings)].some(
    (grouping) =>
      [...a.filterKeys].some((key) => readsFilter(b, grouping, key)) ||
      [...b.filterKeys].some((key) => readsFilter(a, grouping, key)) ||
      fansOutAlike(a, b, grouping),
  );
}

function fansOutAlike(a: SeriesParts, b: SeriesParts, grouping: string): boolean {
  return a.fanOuts.some(
    ({ dimension }) => isReadUnderEach(grouping, dimension) && b.fanOuts.some((other) => other.dimension === dimension),
  );
}
