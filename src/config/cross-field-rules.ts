// Rules between fields of the configuration. They are checked only if each field by itself is right. Pure.

import { holdsScope } from "../keys/scopes.ts";
import { DIMENSIONS, DIMENSIONS_OF, dimension, type EachDimension } from "../usage/dimensions.ts";
import { BILLING_GROUPINGS, type Filter, filterKey, GROUPINGS, NO_CONDITIONS } from "../usage/series.ts";
import type { ConfigIssue, Path, Report } from "./json.ts";
import { describeReceived, describeValue, didYouMean, formatPath, oneOf, quoteAll } from "./messages.ts";
import { checkBudget, checkPrice, overlappingPrices } from "./money.ts";
import { hasId, isPattern, matchesPattern } from "./projects.ts";
import type { RotationInFile } from "./rotations.ts";
import type { ConfigFile } from "./schema.ts";

type Export = ConfigFile["exports"][number];

type CheckContext = ConfigFile & {
  readonly report: Report;
  readonly projectNames: ReadonlySet<string>;
  readonly isDiscovering: boolean;
};

export function crossFieldIssues(file: ConfigFile): ConfigIssue[] {
  const { projects, exports, rotations, prices, budgets } = file;
  const issues: ConfigIssue[] = [];
  const report: Report = (path, message) => void issues.push({ path, message });
  const inFile = projects.flatMap((project, i) => ("id" in project ? [{ ...project, at: ["projects", i] }] : []));
  const projectNames = new Set(inFile.map(({ name }) => name));
  const context = { ...file, report, projectNames, isDiscovering: inFile.length < projects.length };
  const namesAt = (list: string, entries: readonly { readonly name: string }[]) =>
    entries.map(({ name }, i) => ({ value: name, path: [list, i, "name"] }));

  const valuesOf = (field: "id" | "name") => inFile.map((one) => ({ value: one[field], path: [...one.at, field] }));
  reportDuplicates(report, valuesOf("id"), "each project once");
  reportDuplicates(report, valuesOf("name"), "a name that no other project has");
  for (const { key, name, at } of inFile) {
    if ("rotation" in key) checkRotationName(context, key.rotation, [name], [...at, "key", "rotation"]);
  }
  const jobs = [...namesAt("exports", exports), ...namesAt("rotations", rotations)];
  reportDuplicates(report, jobs, "a name that no other job has");
  for (const [i, job] of exports.entries()) checkExport(context, job, ["exports", i]);
  checkFilters(report, exports);
  for (const [i, job] of rotations.entries()) checkRotation(context, job, ["rotations", i]);
  for (const [i, price] of prices.entries()) {
    checkPrice(price, (path, message) => report(["prices", i, ...path], message));
  }
  for (const { index, earlier } of overlappingPrices(prices)) {
    const message = `prices the same usage as prices[${earlier}]: usage has one price; end one of them with "until", or give them models, endpoints, methods or deployments that have nothing in common`;
    report(["prices", index], message);
  }
  reportDuplicates(report, namesAt("budgets", budgets), "a name that no other budget has");
  for (const [i, budget] of budgets.entries()) {
    checkBudget(budget, (path, message) => report(["budgets", i, ...path], message));
    checkProjectName(context, budget.project, ["budgets", i, "project"]);
  }
  return issues;
}

const OTHER_SOURCE = {
  usage: 'that only billing has: give it an export with "source": "billing"',
  billing: 'that only usage has: give it an export without "source": "billing"',
};

function checkExport(context: CheckContext, job: Export, at: Path): void {
  const { source, window, groupings } = job;
  const { report } = context;
  checkProjectNames(context, job.projects, [...at, "projects"]);
  const named = listAt(groupings, [...at, "groupings"]);
  reportDuplicates(report, named, "each grouping once");
  const known: readonly string[] = source === "usage" ? GROUPINGS : BILLING_GROUPINGS;
  for (const { value, path } of named) {
    if (!known.includes(value)) report(path, `${describeValue(value)} is a grouping ${OTHER_SOURCE[source]}`);
  }
  if (window === undefined && source === "billing") {
    const message = 'missing; expected one beside "source": "billing", such as { "days": 7 }: amounts are by day';
    report([...at, "window"], message);
  }
  for (const [i, filter] of job.filters.entries()) {
    if (!("each" in filter)) checkConditions(context, job, filter, [...at, "filters", i]);
  }
}

function checkConditions({ report, service }: CheckContext, job: Export, filter: Filter, at: Path): void {
  const { source, checkFeatures } = job;
  for (const name of DIMENSIONS) {
    const value = filter.dimensions[name];
    if (value === undefined) continue;
    const path = [...at, "dimensions", name];
    if (!DIMENSIONS_OF[source].includes(name)) report(path, `is a dimension ${OTHER_SOURCE[source]}`);
    if (service.dialect === "2026" && dimension(name).in2026?.filter === null) {
      report(path, 'the dialect "2026" has no such filter, only the grouping: remove it, or use "interface"');
    }
    // For an unknown value the service answers without usage, which looks like a day without usage.
    const known = dimension(name).values?.[source];
    if (checkFeatures !== "error" || !known || known.includes(value)) continue;
    const hint = didYouMean(value, known) || '; "checkFeatures": "warn" allows values that the interface does not name';
    report(path, `expected ${oneOf(known)}; got ${describeValue(value)}${hint}`);
  }
  if (source !== "usage" && Object.keys(filter.features).length > 0) {
    report([...at, "features"], `is a condition ${OTHER_SOURCE[source]}`);
  }
}

/** Across all exports, one name means one set of conditions: views identify a filter by its name, the database by its conditions. */
function checkFilters(report: Report, exports: readonly Export[]): void {
  const filters = exports.flatMap((job) => job.filters);
  const fannedOut = new Set(filters.flatMap((one) => ("each" in one ? one.each : [])));
  const projectsByGrouping = new Map([...fannedOut].map((by) => [by, projectsGroupedBy(exports, by)]));
  // For each name, and for each set of conditions, the first filter that has no problem.
  const byName = new Map<string, { readonly conditions: string; readonly at: Path }>();
  const byConditions = new Map<string, { readonly name: string; readonly at: Path }>();
  const nameProblem = (name: string, conditions: string): string | undefined => {
    if (name === "all" && conditions !== NO_CONDITIONS) {
      return '"all" is all usage, without conditions: give this filter another name';
    }
    const each = [...fannedOut].find((one) => name.startsWith(`${one}=`));
    if (each) return `names that begin with "${each}=" are made by "each": give this filter another name`;
    const [sameName, sameConditions] = [byName.get(name), byConditions.get(conditions)];
    if (sameName && sameName.conditions !== conditions) {
      return `has other conditions than the filter of this name at ${formatPath(sameName.at)}: rename one of them`;
    }
    if (!sameConditions || sameConditions.name === name) return undefined;
    return `has the same conditions as ${formatPath(sameConditions.at)}, which is called ${JSON.stringify(sameConditions.name)}: use one name, or the same usage is shown twice`;
  };
  for (const [i, job] of exports.entries()) {
    const names: NameAt[] = [];
    for (const [n, filter] of job.filters.entries()) {
      const at = ["exports", i, "filters", n];
      if ("each" in filter) {
        const path = [...at, "each"];
        names.push({ value: `${filter.each}=*`, path });
        const problem = fanOutProblem(job, filter.each, projectsByGrouping.get(filter.each));
        if (problem !== undefined) report(path, problem);
        continue;
      }
      const { name } = filter;
      const path = [...at, "name"];
      names.push({ value: name, path });
      const conditions = filterKey(filter);
      const problem = nameProblem(name, conditions);
      if (problem !== undefined) report(path, problem);
      else if (!byName.has(name)) {
        byName.set(name, { conditions, at });
        byConditions.set(conditions, { name, at });
      }
    }
    reportDuplicates(report, names, "each filter of an export once");
  }
}

/** `grouped`: the projects whose usage an export groups by the dimension, so that its values are stored. */
function fanOutProblem(job: Export, each: EachDimension, grouped?: ReadonlySet<string>): string | undefined {
  if (job.source === "billing") return 'expected no "each" beside "source": "billing": only usage is fanned out';
  if (job.window === undefined) return 'expected a "window" in this export: "each" takes the values seen on its days';
  const unread = job.projects.filter((name) => !grouped?.has(name));
  if (unread.length === 0) return undefined;
  return `expected an export that groups ${quoteAll(unread)} by ${JSON.stringify(each)} without conditions: "each" takes the values that it has stored`;
}

/** The projects of the exports that group all usage by the dimension. */
function projectsGroupedBy(exports: readonly Export[], grouping: EachDimension): ReadonlySet<string> {
  const readers = exports.filter(({ source, groupings, filters }) => {
    // A filter called "all" that has conditions is reported elsewhere.
    const isUnfiltered = (one: (typeof filters)[number]) =>
      "name" in one && (one.name === "all" || filterKey(one) === NO_CONDITIONS);
    return source === "usage" && groupings.includes(grouping) && filters.some(isUnfiltered);
  });
  return new Set(readers.flatMap(({ projects }) => projects));
}

function checkRotation(context: CheckContext, job: RotationInFile, at: Path): void {
  const { report } = context;
  const { name, project, projects, createWith, maxAgeDays, graceDays, expiresInDays, scopes } = job;
  if (project === undefined && projects === undefined) {
    report([...at, "project"], 'missing; expected "project" or "projects"');
  } else if (project !== undefined && projects !== undefined) {
    report([...at, "projects"], 'expected either "project" or "projects"; this rotation has both');
  }
  checkProjectName(context, project, [...at, "project"]);
  checkProjectNames(context, projects ?? [], [...at, "projects"]);
  for (const [i, sink] of job.deliver.entries()) {
    if (projects === undefined || hasId(sink)) continue;
    const message = 'expected "{id}", the id of the project, in it: otherwise each key would overwrite the one before';
    report([...at, "deliver", i, "file" in sink ? "file" : "command"], message);
  }
  // In the ledger, a rotation of many projects has a name for each project: NAME/ID.
  if (name.includes("/")) report([...at, "name"], 'expected a name without "/"');
  // If a key expired before its successor was in use everywhere, somebody would have no working key.
  const neededDays = maxAgeDays + graceDays;
  if (expiresInDays !== undefined && expiresInDays <= neededDays) {
    const message = `expected more than ${neededDays} (maxAgeDays ${maxAgeDays} and graceDays ${graceDays}), or the key expires while it is in use; got ${expiresInDays}`;
    report([...at, "expiresInDays"], message);
  }
  // Without createWith, the project's own key creates the new one.
  const creators = createWith ? [createWith] : context.projects.map(({ key }) => key);
  const makesItsSuccessor = creators.some((key) => "rotation" in key && key.rotation === name);
  if (makesItsSuccessor && !holdsScope(scopes, "keys:write")) {
    const message = `expected keys:write, or a role with it, because each key creates the next one unless createWith names another key; got ${scopes.join(", ")}`;
    report([...at, "scopes"], message);
  }
  if (createWith && "rotation" in createWith) {
    const names = projects ?? [project ?? ""];
    const rotated = [...context.projectNames].filter((one) => names.some((name) => matchesPattern(name, one)));
    checkRotationName(context, createWith.rotation, rotated, [...at, "createWith", "rotation"]);
  }
}

/** A key of another project's rotation can neither read this project nor create keys in it. */
function checkRotationName(context: CheckContext, name: string, projects: readonly string[], path: Path): void {
  const { projectNames, rotations, report } = context;
  const rotation = rotations.find((one) => one.name === name);
  if (!rotation) {
    const names = rotations.map((one) => one.name);
    reportUnknown(report, "a rotation", names, { value: name, path });
    return;
  }
  // A rotation whose project is not configured is reported elsewhere.
  const isRotated = (project: string) =>
    rotation.projects?.some((one) => matchesPattern(one, project)) ??
    (rotation.project === project || !projectNames.has(rotation.project ?? ""));
  if (!projects.every(isRotated))
    report(path, "expected a rotation of this project; this one makes the keys of another project");
}

/** Without discovery, a pattern must match a project of the file. */
function checkProjectNames(context: CheckContext, names: readonly string[], at: Path): void {
  const { projectNames, isDiscovering, report } = context;
  const named = listAt(names, at);
  reportDuplicates(report, named, "each project once");
  for (const { value, path } of named) {
    if (!isPattern(value)) checkProjectName(context, value, path);
    else if (!isDiscovering && !projectNames.values().some((name) => matchesPattern(value, name))) {
      const known = quoteAll([...projectNames]);
      report(path, `expected a pattern that matches a project (${known}); got ${describeValue(value)}`);
    }
  }
}

function checkProjectName(context: CheckContext, name: string | undefined, path: Path): void {
  const { projectNames, isDiscovering, report } = context;
  if (name === undefined || projectNames.has(name)) return;
  const hint = isDiscovering ? '; discovered projects are named by a pattern such as "prod-*"' : "";
  reportUnknown(report, "a project", projectNames, { value: name, path }, hint);
}

type NameAt = { readonly value: string; readonly path: Path };

function listAt(values: readonly string[], path: Path): NameAt[] {
  return values.map((value, index) => ({ value, path: [...path, index] }));
}

function reportDuplicates(report: Report, named: readonly NameAt[], expected: string): void {
  const first = new Map<string, Path>();
  for (const { value, path } of named) {
    const earlier = first.get(value);
    if (!earlier) first.set(value, path);
    else report(path, `expected ${expected}; got ${describeValue(value)}, which is already at ${formatPath(earlier)}`);
  }
}

function reportUnknown(report: Report, what: string, known: Iterable<string>, { value, path }: NameAt, hint = "") {
  const names = [...known];
  const choice = names.length === 0 ? "there is none" : quoteAll(names);
  const got = `${describeReceived(path, value)}${didYouMean(value, names)}`;
  report(path, `expected the name of ${what} (${choice}); got ${got}${hint}`);
}
