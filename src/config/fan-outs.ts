// Checks of fan-out filters, `{ "each": "accessor" }`, against the rest of the configuration. Like checks.ts they read the raw value.
// Pure.

import { isReadUnderEach } from "../usage/fan-out.ts";
import { filterKey, GROUPINGS, NO_CONDITIONS } from "../usage/series.ts";
import type { Path } from "./json.ts";
import type { LenientExport } from "./lenient.ts";
import { type ConfigIssue, formatPath, quoteAll } from "./messages.ts";
import { FilterOfEach, Filter as FilterSchema } from "./schema.ts";

type FanOutAtPath = { readonly each: FilterOfEach["each"]; readonly exportIndex: number; readonly path: Path };

export function fanOutIssues(exports: readonly LenientExport[]): ConfigIssue[] {
  const fanOuts = exports.flatMap(fanOutsOf);
  return [
    ...fanOuts.flatMap((fanOut, index) => {
      const message = problemOf(fanOut, fanOuts.slice(0, index), exports);
      return message === undefined ? [] : [{ path: fanOut.path, message }];
    }),
    ...exports.flatMap((job, index) => nameIssues(job, index, fanOuts)),
  ];
}

function fanOutsOf({ filters = [] }: LenientExport, exportIndex: number): FanOutAtPath[] {
  return filters.flatMap((raw, index) => {
    const { data } = FilterOfEach.safeParse(raw);
    return data ? [{ each: data.each, exportIndex, path: ["exports", exportIndex, "filters", index, "each"] }] : [];
  });
}

function problemOf(
  { each, exportIndex }: FanOutAtPath,
  earlier: readonly FanOutAtPath[],
  exports: readonly LenientExport[],
): string | undefined {
  const job = exports[exportIndex];
  if (!job) return undefined;
  if (job.source === "billing") return 'expected no "each" beside "source": "billing": only usage is fanned out';
  const dimension = JSON.stringify(each);
  const twice = earlier.find((other) => other.exportIndex === exportIndex && other.each === each);
  if (twice) return `expected each dimension of an export once; ${dimension} is already at ${formatPath(twice.path)}`;
  if (job.window === undefined) return 'expected a "window" in this export: the values are those of its days';
  if (areGroupings(job.groupings) && !job.groupings.some((grouping = "none") => isReadUnderEach(grouping, each))) {
    return `expected a grouping in this export besides "none" and ${dimension}: usage by ${dimension} has the numbers of these two for each value already`;
  }
  const read = new Set(exports.filter((one) => groupsBy(one, each)).flatMap(({ projects }) => projects));
  const unread = job.projects.filter((name) => name !== undefined && !read.has(name));
  const names = quoteAll(unread.filter((name) => name !== undefined));
  if (unread.length === 0) return undefined;
  return `expected an export that groups ${names} by ${dimension} without conditions: what it stored says which values there are`;
}

/** Wrong groupings have issues of their own. */
function areGroupings(groupings: LenientExport["groupings"]): boolean {
  const known = new Set<string | undefined>(GROUPINGS);
  return (
    groupings.length > 0 && new Set(groupings).size === groupings.length && groupings.every((one) => known.has(one))
  );
}

function groupsBy({ source, groupings, filters }: LenientExport, grouping: string): boolean {
  const isUnfiltered = (raw: unknown) => {
    const { data } = FilterSchema.safeParse(raw);
    // One called "all" must have no conditions, which checks.ts says.
    return data !== undefined && (data.name === "all" || filterKey(data) === NO_CONDITIONS);
  };
  const isGroupedBy = groupings.length === 0 || groupings.includes(grouping);
  return source === "usage" && isGroupedBy && (filters === undefined || filters.some(isUnfiltered));
}

/** A series is known by the name of its filter, so no other filter may have the name of a value. */
function nameIssues(
  { filters = [] }: LenientExport,
  exportIndex: number,
  fanOuts: readonly FanOutAtPath[],
): ConfigIssue[] {
  return filters.flatMap((raw, index) => {
    const name = FilterSchema.safeParse(raw).data?.name;
    const fanOut = fanOuts.find(({ each }) => name?.startsWith(`${each}=`));
    if (!fanOut) return [];
    const message = `names that begin with "${fanOut.each}=" are those of the values of ${formatPath(fanOut.path)}: give this filter another name`;
    return [{ path: ["exports", exportIndex, "filters", index, "name"], message }];
  });
}
