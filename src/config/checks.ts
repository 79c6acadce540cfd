// What one part of the configuration says about another. These mistakes are reported once every field by itself is right. Pure.

import { DIMENSIONS, DIMENSIONS_OF, dimension, type Source } from "../usage/dimensions.ts";
import {
  BILLING_GROUPINGS,
  type Filter,
  filterKey,
  GROUPINGS,
  isReadUnderEach,
  NO_CONDITIONS,
  unlistedValues,
} from "../usage/series.ts";
import { PLACEHOLDER_ID } from "./fields.ts";
import type { Path } from "./json.ts";
import {
  type ConfigIssue,
  describeReceived,
  describeValue,
  didYouMean,
  formatPath,
  oneOf,
  quoteAll,
} from "./messages.ts";
import { overlapIssues } from "./money.ts";
import { isPattern, matchesPattern } from "./patterns.ts";
import type { WrittenProject } from "./projects.ts";
import type { WrittenRotation } from "./rotations.ts";
import type { ConfigFile, FilterOfEach } from "./schema.ts";

type Export = ConfigFile["exports"][number];
type Report = (path: Path, message: string) => void;

/** With the names looked up often: there may be thousands of projects. */
type Checked = ConfigFile & {
  readonly report: Report;
  readonly projectNames: Names<WrittenProject>;
  readonly rotationNames: Names<WrittenRotation>;
  readonly isDiscovering: boolean;
};

/** `isExample` accepts the placeholder project of the packaged example, because only the emulator is asked for it. */
export function crossFieldIssues(file: ConfigFile, isExample = false): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const report: Report = (path, message) => void issues.push({ path, message });
  const { projects, exports, rotations, prices, budgets } = file;
  // Without the entries that discover others, whose name is a template. Each project keeps its place in the file.
  const written = projects.flatMap((project, i) => ("id" in project ? [{ project, at: ["projects", i] }] : []));
  const projectNames = namesOf(written.map(({ project }) => project));
  const isDiscovering = written.length < projects.length;
  const config = { ...file, report, projectNames, rotationNames: namesOf(rotations), isDiscovering };
  const reportTwice = (list: string, expected: string, entries: readonly { readonly name: string }[]) =>
    reportDuplicates(
      report,
      entries.map(({ name }, i) => ({ value: name, path: [list, i, "name"] })),
      expected,
    );

  for (const [field, expected] of [
    ["id", "each project once"],
    ["name", "a name that no other project has"],
  ] as const) {
    reportDuplicates(
      report,
      written.map(({ project, at }) => ({ value: project[field], path: [...at, field] })),
      expected,
    );
  }
  for (const { project, at } of written) checkProject(config, project, at, isExample);
  reportTwice("exports", "a name that no other export has", exports);
  for (const [i, job] of exports.entries()) checkExport(config, job, ["exports", i]);
  checkFilters(report, exports);
  reportTwice("rotations", "a name that no other rotation has", rotations);
  for (const [i, { name }] of rotations.entries()) {
    if (!exports.some((job) => job.name === name)) continue;
    report(["rotations", i, "name"], `expected a name that no export has, as commands choose a job by it`);
  }
  for (const [i, job] of rotations.entries()) checkRotation(config, job, ["rotations", i]);
  issues.push(...overlapIssues(prices));
  reportTwice("budgets", "a name that no other budget has", budgets);
  for (const [i, { project }] of budgets.entries()) checkProjectName(config, project, ["budgets", i, "project"]);
  return issues;
}

function checkProject(config: Checked, project: WrittenProject, at: Path, isExample: boolean): void {
  const { id, name, key } = project;
  if (key.kind === "rotation") checkRotationName(config, key.rotation, name, [...at, "key", "rotation"]);
  if (isExample || id !== PLACEHOLDER_ID) return;
  const what = `expected your project's id at the service, which its console shows; "${PLACEHOLDER_ID}" is only a placeholder`;
  config.report([...at, "id"], what);
}

const OTHER_SOURCE: Readonly<Record<Source, string>> = {
  usage: 'that only billing has: give it an export with "source": "billing"',
  billing: 'that only usage has: give it an export without "source": "billing"',
};

const GROUPINGS_OF: Readonly<Record<Source, readonly string[]>> = { usage: GROUPINGS, billing: BILLING_GROUPINGS };

function checkExport(config: Checked, job: Export, at: Path): void {
  const { source, window, undated, groupings } = job;
  const { report } = config;
  checkProjectNames(config, job.projects, [...at, "projects"]);
  reportDuplicates(report, listAt(groupings, [...at, "groupings"]), "each grouping once");
  for (const [i, grouping] of groupings.entries()) {
    if (GROUPINGS_OF[source].includes(grouping)) continue;
    report([...at, "groupings", i], `${describeValue(grouping)} is a grouping ${OTHER_SOURCE[source]}`);
  }
  // With a window, an answer that names no day is refused, so "undated" would have no effect.
  if (window !== undefined && undated !== "snapshot") {
    const got = JSON.stringify(undated);
    report(
      [...at, "undated"],
      `expected no "undated" beside "window": an answer to a window names its days; got ${got}`,
    );
  }
  if (window === undefined && source === "billing") {
    const message = 'missing; expected one beside "source": "billing", such as { "days": 7 }: amounts are by day';
    report([...at, "window"], message);
  }
  for (const [i, filter] of job.filters.entries()) {
    if (!("each" in filter)) checkConditions(config, job, filter, [...at, "filters", i]);
  }
}

function checkConditions({ report, service }: Checked, job: Export, filter: Filter, at: Path): void {
  const { source, checkFeatures } = job;
  const { dimensions, features } = filter;
  for (const one of DIMENSIONS.filter((name) => Object.hasOwn(dimensions, name))) {
    const path = [...at, "dimensions", one];
    if (!DIMENSIONS_OF[source].includes(one)) report(path, `is a dimension ${OTHER_SOURCE[source]}`);
    if (service.dialect !== "2026" || dimension(one).in2026?.filter !== null) continue;
    report(path, 'the dialect "2026" has no such filter, only the grouping: remove it, or use the dialect "interface"');
  }
  if (source !== "usage" && Object.keys(features).length > 0) {
    report([...at, "features"], `is a condition ${OTHER_SOURCE[source]}`);
  }
  if (checkFeatures !== "error") return;
  // The service answers a value it does not know with no usage, which looks like a day without usage.
  for (const { dimension: one, value, listed } of unlistedValues(filter, source)) {
    const hint =
      didYouMean(value, listed) || '; "checkFeatures": "warn" allows values that the interface does not name';
    report([...at, "dimensions", one], `expected ${oneOf(listed)}; got ${describeValue(value)}${hint}`);
  }
}

// One filter has one name over all exports. The views identify a filter by its name, the database by its conditions: two names for
// the same conditions would show the same usage twice, and two conditions with one name would show different usage as one.

type FilterAt = { readonly filter: Filter; readonly job: Export; readonly at: Path };
type FanOutAt = { readonly each: FilterOfEach["each"]; readonly job: Export; readonly at: Path };

function checkFilters(report: Report, exports: readonly Export[]): void {
  // Filters without an issue: a wrong one will be changed.
  const accepted: FilterAt[] = [];
  const fanOuts: FanOutAt[] = [];
  for (const [i, job] of exports.entries()) {
    for (const [n, filter] of job.filters.entries()) {
      const at = ["exports", i, "filters", n];
      if ("each" in filter) {
        const problem = fanOutProblem({ each: filter.each, job, at }, fanOuts, exports);
        if (problem !== undefined) report([...at, "each"], problem);
        fanOuts.push({ each: filter.each, job, at });
        continue;
      }
      const problem = filterProblem({ filter, job, at }, accepted);
      if (problem === undefined) accepted.push({ filter, job, at });
      else report([...at, "name"], problem);
    }
  }
  // A series is known by the name of its filter, so no other filter may have the name of a value.
  for (const { filter, at } of accepted) {
    const fanOut = fanOuts.find(({ each }) => filter.name.startsWith(`${each}=`));
    if (!fanOut) continue;
    const message = `names that begin with "${fanOut.each}=" are those of the values of ${formatPath(fanOut.at)}: give this filter another name`;
    report([...at, "name"], message);
  }
}

function filterProblem({ filter, job }: FilterAt, earlier: readonly FilterAt[]): string | undefined {
  const name = JSON.stringify(filter.name);
  const conditions = filterKey(filter);
  if (filter.name === "all" && conditions !== NO_CONDITIONS) {
    return '"all" is all usage, without conditions: give this filter another name';
  }
  const ofName = earlier.filter((other) => other.filter.name === filter.name);
  const twice = ofName.find((other) => other.job === job);
  if (twice) return `expected each filter of an export once; ${name} is already at ${formatPath(twice.at)}`;

  const otherMeaning = ofName.find((other) => filterKey(other.filter) !== conditions);
  if (otherMeaning) {
    return `${name} has other conditions at ${formatPath(otherMeaning.at)}: expected one meaning for a name; rename one of them`;
  }
  const same = earlier.find((other) => filterKey(other.filter) === conditions && other.filter.name !== filter.name);
  if (!same) return undefined;
  const what = conditions === NO_CONDITIONS ? "no conditions either" : "the same conditions";
  return `${formatPath(same.at)} has ${what} and is called ${JSON.stringify(same.filter.name)}: expected one name, or the same usage is shown twice; use one of the two`;
}

function fanOutProblem(
  { each, job }: FanOutAt,
  earlier: readonly FanOutAt[],
  exports: readonly Export[],
): string | undefined {
  if (job.source === "billing") return 'expected no "each" beside "source": "billing": only usage is fanned out';
  const dimension = JSON.stringify(each);
  const twice = earlier.find((other) => other.job === job && other.each === each);
  if (twice) {
    return `expected each dimension of an export once; ${dimension} is already at ${formatPath([...twice.at, "each"])}`;
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

function checkRotation(config: Checked, job: WrittenRotation, at: Path): void {
  const { report } = config;
  const { project, projects = [], createWith, maxAgeDays, graceDays, expiresInDays } = job;
  checkProjectName(config, project, [...at, "project"]);
  checkProjectNames(config, projects, [...at, "projects"]);
  // The rotations of the projects of a rotation are called NAME/ID in the ledger.
  const group = config.rotations.find((one) => one.projects !== undefined && job.name.startsWith(`${one.name}/`));
  if (group) {
    const message = `expected a name that does not begin with ${JSON.stringify(`${group.name}/`)}: the keys of the projects of that rotation are stored under such names`;
    report([...at, "name"], message);
  }
  reportDuplicates(report, listAt(job.scopes, [...at, "scopes"]), "each scope once");
  reportDuplicates(report, listAt(job.tags, [...at, "tags"]), "each tag once");
  // A key must not expire before its successor is in use everywhere: nobody would have a working key.
  const neededDays = maxAgeDays + graceDays;
  if (expiresInDays !== undefined && expiresInDays <= neededDays) {
    const message = `expected more than ${neededDays} (maxAgeDays ${maxAgeDays} and graceDays ${graceDays}), or the key expires while it is in use; got ${expiresInDays}`;
    report([...at, "expiresInDays"], message);
  }
  if (project !== undefined && createWith?.kind === "rotation") {
    checkRotationName(config, createWith.rotation, project, [...at, "createWith", "rotation"]);
  }
}

/** A key belongs to one project: a key of another project's rotation can neither read this project nor create keys in it. */
function checkRotationName(config: Checked, name: string, project: string, path: Path): void {
  const { projectNames, rotationNames, report } = config;
  const rotation = rotationNames.byName.get(name);
  if (!rotation) {
    reportUnknown(report, "a rotation", rotationNames, { value: name, path });
    return;
  }
  // A rotation whose project is not configured has an issue of its own.
  const isElsewhere =
    rotation.projects === undefined
      ? rotation.project !== project && projectNames.byName.has(rotation.project ?? "")
      : !rotation.projects.some((one) => matchesPattern(one, project));
  if (isElsewhere) report(path, "expected a rotation of this project; this one makes the keys of another project");
}

/** A pattern must fit a project of the file, unless others are discovered. */
function checkProjectNames(config: Checked, names: readonly string[], at: Path): void {
  const { all, byName } = config.projectNames;
  const named = listAt(names, at);
  reportDuplicates(config.report, named, "each project once");
  for (const { value, path } of named) {
    if (!isPattern(value) || byName.has(value)) checkProjectName(config, value, path);
    else if (!config.isDiscovering && !all.some((name) => matchesPattern(value, name))) {
      config.report(path, `expected a pattern that fits a project (${quoteAll(all)}); got ${describeValue(value)}`);
    }
  }
}

function checkProjectName(config: Checked, name: string | undefined, path: Path): void {
  const { projectNames, report } = config;
  if (name === undefined || projectNames.byName.has(name)) return;
  const byId = [...projectNames.byName.values()].find(({ id }) => id === name);
  const hint = config.isDiscovering ? '; discovered projects are named by a pattern such as "prod-*"' : "";
  if (byId) report(path, `expected the name of a project; got its id; did you mean ${JSON.stringify(byId.name)}?`);
  else reportUnknown(report, "a project", projectNames, { value: name, path }, hint);
}

// Names that must be given once, and names that must exist.

type NameAt = { readonly value: string; readonly path: Path };

function listAt(values: readonly string[], path: Path): NameAt[] {
  return values.map((value, index) => ({ value, path: [...path, index] }));
}

/** Reports each value that an earlier entry has too. */
function reportDuplicates(report: Report, named: readonly NameAt[], expected: string): void {
  const first = new Map<string, Path>();
  for (const { value, path } of named) {
    const earlier = first.get(value);
    const got = describeReceived(path, value);
    if (earlier) report(path, `expected ${expected}; got ${got}, which is already at ${formatPath(earlier)}`);
    else first.set(value, path);
  }
}

/** Each name once, and the first entry that has it. */
type Names<Entry> = { readonly all: readonly string[]; readonly byName: ReadonlyMap<string, Entry> };

function namesOf<Entry extends { readonly name: string }>(entries: readonly Entry[]): Names<Entry> {
  const byName = new Map<string, Entry>();
  for (const entry of entries) if (!byName.has(entry.name)) byName.set(entry.name, entry);
  return { all: [...byName.keys()], byName };
}

function reportUnknown(
  report: Report,
  what: string,
  { all }: Names<unknown>,
  { value, path }: NameAt,
  hint = "",
): void {
  const choice = all.length === 0 ? "there is none" : quoteAll(all);
  const got = `${describeReceived(path, value)}${didYouMean(value, all)}`;
  report(path, `expected the name of ${what} (${choice}); got ${got}${hint}`);
}
