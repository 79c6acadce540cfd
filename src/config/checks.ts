// What one part of the configuration says about another. These mistakes are reported once every field by itself is right. Pure.

import { DIMENSIONS, DIMENSIONS_OF, dimension, type Source } from "../usage/dimensions.ts";
import { BILLING_GROUPINGS, type Filter, GROUPINGS, unlistedValues } from "../usage/series.ts";
import { PLACEHOLDER_ID } from "./fields.ts";
import { filterIssues } from "./filter-checks.ts";
import type { Path } from "./json.ts";
import { keyIssues } from "./key-source.ts";
import { type ConfigIssue, describeReceived, describeValue, formatPath, oneOf, quoteAll } from "./messages.ts";
import { isPattern, matchesPattern } from "./patterns.ts";
import { overlapIssues } from "./prices.ts";
import type { WrittenRotation } from "./rotation-schema.ts";
import type { ConfigFile, WrittenProject } from "./schema.ts";
import { didYouMean } from "./suggestions.ts";

type Export = ConfigFile["exports"][number];

/** With the names looked up often: there may be thousands of projects. */
type Checked = ConfigFile & {
  /** Without those that discover others, whose name is a template. Each keeps its place in the file. */
  readonly written: readonly { readonly project: WrittenProject; readonly path: Path }[];
  readonly projectNames: Names<WrittenProject>;
  readonly rotationNames: Names<WrittenRotation>;
  readonly isDiscovering: boolean;
};

/** `isExample` accepts the placeholder project of the packaged example, because only the emulator is asked for it. */
export function crossFieldIssues(file: ConfigFile, isExample = false): ConfigIssue[] {
  const { exports, rotations, prices, budgets } = file;
  const written = file.projects.flatMap((project, i) =>
    "id" in project ? [{ project, path: ["projects", i] as const }] : [],
  );
  const projectNames = namesOf(written.map(({ project }) => project));
  const isDiscovering = written.length < file.projects.length;
  const config = { ...file, written, projectNames, rotationNames: namesOf(rotations), isDiscovering };
  const fieldOf = (field: "id" | "name") =>
    written.map(({ project, path }) => ({ value: project[field], path: [...path, field] }));
  const namesAt = (list: string, entries: readonly { readonly name: string }[]) =>
    entries.map(({ name }, index) => ({ value: name, path: [list, index, "name"] }));
  return [
    ...duplicateIssues(fieldOf("id"), "each project once"),
    ...duplicateIssues(fieldOf("name"), "a name that no other project has"),
    ...written.flatMap(({ project, path }) => projectIssues(config, project, path, isExample)),
    ...duplicateIssues(namesAt("exports", exports), "a name that no other export has"),
    ...exports.flatMap((job, i) => exportIssues(config, job, ["exports", i])),
    ...filterIssues(exports),
    ...duplicateIssues(namesAt("rotations", rotations), "a name that no other rotation has"),
    ...rotations.flatMap((job, i) => rotationIssues(config, job, ["rotations", i])),
    ...("path" in prices ? [] : overlapIssues(prices, ["prices"])),
    ...duplicateIssues(namesAt("budgets", budgets), "a name that no other budget has"),
    ...budgets.flatMap(({ project }, i) =>
      project === undefined ? [] : unknownProjectIssues(config, { value: project, path: ["budgets", i, "project"] }),
    ),
  ];
}

function projectIssues(config: Checked, project: WrittenProject, path: Path, isExample: boolean): ConfigIssue[] {
  const { id, name, key } = project;
  const issues = [
    ...keyIssues(key, project, [...path, "key"]),
    ...(key.kind === "rotation" ? rotationReferenceIssues(config, key.rotation, name, [...path, "key"]) : []),
  ];
  if (isExample || id !== PLACEHOLDER_ID) return issues;
  const message = `expected your project's id at the service, which its console shows; "${PLACEHOLDER_ID}" is only a placeholder`;
  return [...issues, { path: [...path, "id"], message }];
}

function exportIssues(config: Checked, job: Export, path: Path): ConfigIssue[] {
  const { source, window, undated, checkFeatures } = job;
  const issues: ConfigIssue[] = [
    ...namedProjectIssues(config, job.projects, [...path, "projects"]),
    ...duplicateIssues(listAtPath(job.groupings, [...path, "groupings"]), "each grouping once"),
    ...job.groupings.flatMap((grouping, i) => groupingIssues(source, grouping, [...path, "groupings", i])),
  ];
  // With a window, an answer that names no day is refused, so "undated" would have no effect.
  if (window !== undefined && undated !== "snapshot") {
    const message = `expected no "undated" beside "window": an answer to a window names its days; got ${JSON.stringify(undated)}`;
    issues.push({ path: [...path, "undated"], message });
  }
  if (window === undefined && source === "billing") {
    const message = 'missing; expected one beside "source": "billing", such as { "days": 7 }: amounts are by day';
    issues.push({ path: [...path, "window"], message });
  }
  for (const [i, filter] of job.filters.entries()) {
    if ("each" in filter) continue;
    const at = [...path, "filters", i];
    issues.push(...conditionIssues(source, filter, at));
    if (config.service.dialect === "2026") issues.push(...foreignFilterIssues(filter, at));
    if (checkFeatures === "error") issues.push(...unlistedValueIssues(filter, source, at));
  }
  return issues;
}

const OTHER_SOURCE: Readonly<Record<Source, string>> = {
  usage: 'that only billing has: give it an export with "source": "billing"',
  billing: 'that only usage has: give it an export without "source": "billing"',
};

const GROUPINGS_OF: Readonly<Record<Source, readonly string[]>> = { usage: GROUPINGS, billing: BILLING_GROUPINGS };

function groupingIssues(source: Source, grouping: string, path: Path): ConfigIssue[] {
  if (GROUPINGS_OF[source].includes(grouping)) return [];
  return [{ path, message: `${describeValue(grouping)} is a grouping ${OTHER_SOURCE[source]}` }];
}

function conditionIssues(source: Source, { dimensions, features }: Filter, path: Path): ConfigIssue[] {
  const foreign = DIMENSIONS.filter((one) => Object.hasOwn(dimensions, one) && !DIMENSIONS_OF[source].includes(one));
  const issues = foreign.map((one) => ({
    path: [...path, "dimensions", one],
    message: `is a dimension ${OTHER_SOURCE[source]}`,
  }));
  if (source === "usage" || Object.keys(features).length === 0) return issues;
  return [...issues, { path: [...path, "features"], message: `is a condition ${OTHER_SOURCE[source]}` }];
}

function foreignFilterIssues({ dimensions }: Filter, path: Path): ConfigIssue[] {
  const message = 'the dialect "2026" has no such filter, only the grouping: remove it, or use the dialect "interface"';
  return DIMENSIONS.filter((one) => dimensions[one] !== undefined && dimension(one).in2026?.filter === null).map(
    (one) => ({ path: [...path, "dimensions", one], message }),
  );
}

/** The service answers a value it does not know with no usage, which looks like a day without usage. */
function unlistedValueIssues(filter: Filter, source: Source, path: Path): ConfigIssue[] {
  return unlistedValues(filter, source).map(({ dimension: one, value, listed }) => {
    const hint =
      didYouMean(value, listed) || '; "checkFeatures": "warn" allows values that the interface does not name';
    const message = `expected ${oneOf(listed)}; got ${describeValue(value)}${hint}`;
    return { path: [...path, "dimensions", one], message };
  });
}

function rotationIssues(config: Checked, job: WrittenRotation, path: Path): ConfigIssue[] {
  const { project, projects = [], createWith } = job;
  return [
    ...(project === undefined ? [] : unknownProjectIssues(config, { value: project, path: [...path, "project"] })),
    ...namedProjectIssues(config, projects, [...path, "projects"]),
    ...renamedDeliveryIssues(config, job, path),
    ...sharedNameIssues(config, job, path),
    ...duplicateIssues(listAtPath(job.scopes, [...path, "scopes"]), "each scope once"),
    ...duplicateIssues(listAtPath(job.tags, [...path, "tags"]), "each tag once"),
    ...expiryIssues(job, path),
    ...(project !== undefined && createWith?.kind === "rotation"
      ? rotationReferenceIssues(config, createWith.rotation, project, [...path, "createWith"])
      : []),
  ];
}

/**
 * Discovered projects have the names that the service lists. One may take over the name of another, and its key would then be delivered
 * over the other's.
 */
function renamedDeliveryIssues(
  { isDiscovering }: Checked,
  { projects = [], deliver }: WrittenRotation,
  path: Path,
): ConfigIssue[] {
  if (!isDiscovering || !projects.some(isPattern)) return [];
  const message =
    'expected "{id}" beside "{project}" in it, or in its place: the name of a discovered project may change at the service, and the key of another project would be overwritten';
  const isByName = (text: string) => text.includes("{project}") && !text.includes("{id}");
  return deliver.flatMap((sink, i) => {
    const at = [...path, "deliver", i, sink.kind];
    if (sink.kind === "file") return isByName(sink.path) ? [{ path: at, message }] : [];
    // Each argument for itself: which of them names the place of the key is not known here.
    return sink.command.flatMap((text, n) => (isByName(text) ? [{ path: [...at, n], message }] : []));
  });
}

/** The rotations of the projects of a rotation are called NAME/ID in the ledger. */
function sharedNameIssues({ rotations }: Checked, { name }: WrittenRotation, path: Path): ConfigIssue[] {
  const group = rotations.find((one) => one.projects !== undefined && name.startsWith(`${one.name}/`));
  if (group === undefined) return [];
  const message = `expected a name that does not begin with ${JSON.stringify(`${group.name}/`)}: the keys of the projects of that rotation are stored under such names`;
  return [{ path: [...path, "name"], message }];
}

/** A key must not expire before its successor is in use everywhere: nobody would have a working key. */
function expiryIssues({ maxAgeDays, graceDays, expiresInDays }: WrittenRotation, path: Path): ConfigIssue[] {
  const neededDays = maxAgeDays + graceDays;
  if (expiresInDays === undefined || expiresInDays > neededDays) return [];
  const message = `expected more than ${neededDays} (maxAgeDays ${maxAgeDays} and graceDays ${graceDays}), or the key expires while it is in use; got ${expiresInDays}`;
  return [{ path: [...path, "expiresInDays"], message }];
}

/** A key belongs to one project: a key of another project's rotation can neither read this project nor create keys in it. */
function rotationReferenceIssues(
  { projectNames, rotationNames }: Checked,
  name: string,
  project: string,
  keyPath: Path,
): ConfigIssue[] {
  const path = [...keyPath, "rotation"];
  const rotation = rotationNames.byName.get(name);
  if (!rotation) return unknownNameIssues("a rotation", rotationNames, { value: name, path });
  // A rotation whose project is not configured has an issue of its own.
  const isElsewhere =
    rotation.projects === undefined
      ? rotation.project !== project && projectNames.byName.has(rotation.project ?? "")
      : !rotation.projects.some((one) => matchesPattern(one, project));
  if (!isElsewhere) return [];
  return [{ path, message: "expected a rotation of this project; this one makes the keys of another project" }];
}

/** A pattern must fit a project of the file, unless others are discovered. */
function namedProjectIssues(config: Checked, names: readonly string[], path: Path): ConfigIssue[] {
  const { all, byName } = config.projectNames;
  const named = listAtPath(names, path);
  return [
    ...duplicateIssues(named, "each project once"),
    ...named.flatMap((one) => {
      const { value } = one;
      if (!isPattern(value) || byName.has(value)) return unknownProjectIssues(config, one);
      if (config.isDiscovering || all.some((name) => matchesPattern(value, name))) return [];
      const message = `expected a pattern that fits a project (${quoteAll(all)}); got ${describeValue(value)}`;
      return [{ path: one.path, message }];
    }),
  ];
}

function unknownProjectIssues({ written, projectNames, isDiscovering }: Checked, named: NameAtPath): ConfigIssue[] {
  const issues = unknownNameIssues("a project", projectNames, named);
  if (issues.length === 0) return [];
  const byId = written.find(({ project: { id, name } }) => id === named.value && name !== id);
  if (byId !== undefined) {
    const message = `expected the name of a project; got its id; did you mean ${JSON.stringify(byId.project.name)}?`;
    return [{ path: named.path, message }];
  }
  const hint = isDiscovering ? '; discovered projects are named by a pattern such as "prod-*"' : "";
  return issues.map((issue) => ({ ...issue, message: `${issue.message}${hint}` }));
}

// Names that must be given once, and names that must exist.

type NameAtPath = { readonly value: string; readonly path: Path };

function listAtPath(values: readonly string[], path: Path): NameAtPath[] {
  return values.map((value, index) => ({ value, path: [...path, index] }));
}

/** One issue for each value that an earlier entry has too. */
function duplicateIssues(named: readonly NameAtPath[], expected: string): ConfigIssue[] {
  const first = new Map<string, Path>();
  return named.flatMap(({ value, path }) => {
    const earlier = first.get(value);
    if (earlier === undefined) {
      first.set(value, path);
      return [];
    }
    const message = `expected ${expected}; got ${describeReceived(path, value)}, which is already at ${formatPath(earlier)}`;
    return [{ path, message }];
  });
}

/** Each name once, and the first entry that has it. */
type Names<Entry> = { readonly all: readonly string[]; readonly byName: ReadonlyMap<string, Entry> };

function namesOf<Entry extends { readonly name: string }>(entries: readonly Entry[]): Names<Entry> {
  const byName = new Map<string, Entry>();
  for (const entry of entries) if (!byName.has(entry.name)) byName.set(entry.name, entry);
  return { all: [...byName.keys()], byName };
}

function unknownNameIssues(what: string, { all, byName }: Names<unknown>, { value, path }: NameAtPath): ConfigIssue[] {
  if (byName.has(value)) return [];
  const choice = all.length === 0 ? "there is none" : quoteAll(all);
  const message = `expected the name of ${what} (${choice}); got ${describeReceived(path, value)}${didYouMean(value, all)}`;
  return [{ path, message }];
}
