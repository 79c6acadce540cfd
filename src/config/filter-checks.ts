// Checks of filters against each other, and of fan-outs, `{ "each": "accessor" }`, against the exports. Pure.
//
// One filter has one name over all exports. The views identify a filter by its name, the database by its conditions: two names for
// the same conditions would show the same usage twice, and two conditions with one name would show different usage as one.

import { type Filter, filterKey, isReadUnderEach, NO_CONDITIONS } from "../usage/series.ts";
import type { Path } from "./json.ts";
import { type ConfigIssue, formatPath, quoteAll } from "./messages.ts";
import type { ConfigFile, FilterOfEach } from "./schema.ts";

type Export = ConfigFile["exports"][number];
type FilterAtPath = { readonly filter: Filter; readonly job: Export; readonly path: Path };
type FanOutAtPath = { readonly each: FilterOfEach["each"]; readonly job: Export; readonly path: Path };

export function filterIssues(exports: readonly Export[]): ConfigIssue[] {
  const all = exports.flatMap((job, i) =>
    job.filters.map((filter, n) => ({ filter, job, path: ["exports", i, "filters", n] })),
  );
  const filters = all.flatMap(({ filter, ...at }) => ("each" in filter ? [] : [{ filter, ...at }]));
  const fanOuts = all.flatMap(({ filter, ...at }) => ("each" in filter ? [{ each: filter.each, ...at }] : []));
  return [
    ...meaningIssues(filters),
    ...filters.flatMap((filter) => valueNameIssues(filter, fanOuts)),
    ...fanOuts.flatMap((fanOut, index) => {
      const message = fanOutProblem(fanOut, fanOuts.slice(0, index), exports);
      return message === undefined ? [] : [{ path: [...fanOut.path, "each"], message }];
    }),
  ];
}

/** Later filters are compared only with filters that have no issue themselves: a wrong one will be changed. */
function meaningIssues(filters: readonly FilterAtPath[]): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const accepted: FilterAtPath[] = [];
  for (const filter of filters) {
    const message = filterProblem(filter, accepted);
    if (message === undefined) accepted.push(filter);
    else issues.push({ path: [...filter.path, "name"], message });
  }
  return issues;
}

function filterProblem({ filter, job }: FilterAtPath, earlier: readonly FilterAtPath[]): string | undefined {
  const name = JSON.stringify(filter.name);
  const conditions = filterKey(filter);
  if (filter.name === "all" && conditions !== NO_CONDITIONS) {
    return '"all" is all usage, without conditions: give this filter another name';
  }
  const ofName = earlier.filter((other) => other.filter.name === filter.name);
  const twice = ofName.find((other) => other.job === job);
  if (twice) return `expected each filter of an export once; ${name} is already at ${formatPath(twice.path)}`;

  const otherMeaning = ofName.find((other) => filterKey(other.filter) !== conditions);
  if (otherMeaning) {
    return `${name} has other conditions at ${formatPath(otherMeaning.path)}: expected one meaning for a name; rename one of them`;
  }
  const otherName = earlier.find(
    (other) => filterKey(other.filter) === conditions && other.filter.name !== filter.name,
  );
  if (!otherName) return undefined;
  const same = conditions === NO_CONDITIONS ? "no conditions either" : "the same conditions";
  return `${formatPath(otherName.path)} has ${same} and is called ${JSON.stringify(otherName.filter.name)}: expected one name, or the same usage is shown twice; use one of the two`;
}

/** A series is known by the name of its filter, so no other filter may have the name of a value. */
function valueNameIssues({ filter, path }: FilterAtPath, fanOuts: readonly FanOutAtPath[]): ConfigIssue[] {
  const fanOut = fanOuts.find(({ each }) => filter.name.startsWith(`${each}=`));
  if (!fanOut) return [];
  const message = `names that begin with "${fanOut.each}=" are those of the values of ${formatPath(fanOut.path)}: give this filter another name`;
  return [{ path: [...path, "name"], message }];
}

function fanOutProblem(
  { each, job }: FanOutAtPath,
  earlier: readonly FanOutAtPath[],
  exports: readonly Export[],
): string | undefined {
  if (job.source === "billing") return 'expected no "each" beside "source": "billing": only usage is fanned out';
  const dimension = JSON.stringify(each);
  const twice = earlier.find((other) => other.job === job && other.each === each);
  if (twice) {
    return `expected each dimension of an export once; ${dimension} is already at ${formatPath([...twice.path, "each"])}`;
  }
  if (job.window === undefined) return 'expected a "window" in this export: the values are those of its days';
  // A grouping that is there twice has an issue of its own.
  const isRight = new Set(job.groupings).size === job.groupings.length;
  if (isRight && !job.groupings.some((grouping) => isReadUnderEach(grouping, each))) {
    return `expected a grouping in this export besides "none" and ${dimension}: usage by ${dimension} has the numbers of these two for each value already`;
  }
  const read = new Set(exports.filter((one) => groupsBy(one, each)).flatMap(({ projects }) => projects));
  const unread = job.projects.filter((name) => !read.has(name));
  if (unread.length === 0) return undefined;
  return `expected an export that groups ${quoteAll(unread)} by ${dimension} without conditions: what it stored says which values there are`;
}

function groupsBy({ source, groupings, filters }: Export, grouping: FilterOfEach["each"]): boolean {
  // One called "all" must have no conditions, which is an issue of its own.
  const isUnfiltered = (filter: Export["filters"][number]) =>
    "name" in filter && (filter.name === "all" || filterKey(filter) === NO_CONDITIONS);
  return source === "usage" && groupings.includes(grouping) && filters.some(isUnfiltered);
}
