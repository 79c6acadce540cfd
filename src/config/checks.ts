// Checks across fields: what one part of the configuration says about another. They read the raw value without the schema, so that
// these issues are reported together with those of the schema. Pure.

import path from "node:path";
import { GRACE_DAYS_DEFAULT, MAX_AGE_DAYS_DEFAULT } from "../keys/policy.ts";
import { DIMENSIONS, dimension } from "../usage/dimensions.ts";
import { type Filter, filterKey, NO_CONDITIONS, unlistedValues } from "../usage/series.ts";
import { TEMPORARY_KEY_FILE } from "./deliveries.ts";
import { fanOutIssues } from "./fan-outs.ts";
import { PLACEHOLDER_ID } from "./fields.ts";
import type { Path } from "./json.ts";
import {
  LenientConfig,
  type LenientExport,
  LenientFilter,
  type LenientProject,
  type LenientRotation,
} from "./lenient.ts";
import { type ConfigIssue, describeReceived, describeValue, formatPath, oneOf, quoteAll } from "./messages.ts";
import { overlapIssues } from "./prices.ts";
import { isPattern, matchesPattern } from "./project-names.ts";
import { Filter as FilterSchema } from "./schema.ts";
import { sourceIssues } from "./source-checks.ts";
import { didYouMean } from "./suggestions.ts";

export type CheckOptions = {
  /** Where relative paths start. */
  readonly baseDir: string;
  /** The program's own files and folders (absolute paths), and what each of them is. No key may be delivered there. */
  readonly ownPaths?: Readonly<Record<string, string>>;
  /** Accepts the placeholder project of the packaged example, because only the emulator is asked for it. */
  readonly isExample?: boolean;
};

export function crossFieldIssues(value: unknown, options: CheckOptions): ConfigIssue[] {
  const parsed = LenientConfig.parse(value, { jitless: true });
  const { exports, rotations, budgets } = parsed;
  // The name of a discovering entry is a template.
  const projects = parsed.projects.map((one) => (isDiscovery(one) ? { ...one, name: undefined } : one));
  const isDiscovering = projects.some(isDiscovery);
  const names = { projectNames: namesOf(projects), rotationNames: namesOf(rotations) };
  const config = { ...parsed, projects, ...names, isDiscovering };
  return [
    ...duplicateIssues(fieldsAtPath("projects", "id", projects), "each project once"),
    ...duplicateIssues(fieldsAtPath("projects", "name", projects), "a name that no other project has"),
    ...projects.flatMap((project, i) => projectIssues(config, project, ["projects", i], options.isExample ?? false)),
    ...duplicateIssues(fieldsAtPath("exports", "name", exports), "a name that no other export has"),
    ...exports.flatMap((job, i) => exportIssues(config, job, ["exports", i])),
    ...filterIssues(exports),
    ...fanOutIssues(exports),
    ...duplicateIssues(fieldsAtPath("rotations", "name", rotations), "a name that no other rotation has"),
    ...rotations.flatMap((job, i) => rotationIssues(config, job, ["rotations", i])),
    ...deliveryIssues(config, options),
    ...overlapIssues(config.prices, ["prices"]),
    ...duplicateIssues(fieldsAtPath("budgets", "name", budgets), "a name that no other budget has"),
    ...budgets.flatMap(({ project }, i) =>
      unknownProjectIssues(config, { value: project, path: ["budgets", i, "project"] }),
    ),
  ];
}

/** With the names looked up often: there may be thousands of projects. */
type Checked = LenientConfig & {
  readonly projectNames: Names<LenientProject>;
  readonly rotationNames: Names<LenientRotation>;
  readonly isDiscovering: boolean;
};

function isDiscovery({ discover }: LenientProject): boolean {
  return discover !== undefined;
}

function projectIssues(
  config: Checked,
  { id, name, key }: LenientProject,
  path: Path,
  isExample: boolean,
): ConfigIssue[] {
  const issues = rotationReferenceIssues(config, key.rotation, name, [...path, "key", "rotation"]);
  if (isExample || id !== PLACEHOLDER_ID) return issues;
  const message = `expected your project's id at the service, which its console shows; "${PLACEHOLDER_ID}" is only a placeholder`;
  return [...issues, { path: [...path, "id"], message }];
}

function exportIssues(config: Checked, job: LenientExport, path: Path): ConfigIssue[] {
  const { service } = config;
  const named = listAtPath(job.projects, [...path, "projects"]);
  const filters = job.filters ?? [];
  return [
    ...named.flatMap((name) => patternIssues(config, name)),
    ...duplicateIssues(named, "each project once"),
    ...duplicateIssues(listAtPath(job.groupings, [...path, "groupings"]), "each grouping once"),
    ...undatedIssues(job, path),
    ...sourceIssues(job, path),
    ...filters.flatMap((filter, i) => {
      const dimensionsPath = [...path, "filters", i, "dimensions"];
      const dimensions = dimensionsIn(filter);
      return [
        ...(service.dialect === "2026" ? foreignFilterIssues(dimensions, dimensionsPath) : []),
        ...((job.checkFeatures ?? "error") === "error" ? unlistedValueIssues(dimensions, job, dimensionsPath) : []),
      ];
    }),
  ];
}

/** With a window, an answer that names no day is refused, so "undated" would have no effect. */
function undatedIssues({ window, undated }: LenientExport, path: Path): ConfigIssue[] {
  if (window === undefined || undated === undefined || undated === "snapshot") return [];
  const message = `expected no "undated" beside "window": an answer to a window names its days; got ${JSON.stringify(undated)}`;
  return [{ path: [...path, "undated"], message }];
}

type Dimensions = Filter["dimensions"];

/** The dimensions of a raw filter whose values are text. */
function dimensionsIn(filter: unknown): Dimensions {
  const { dimensions } = LenientFilter.parse(filter);
  return Object.fromEntries(Object.entries(dimensions).filter(([, value]) => value !== undefined));
}

function foreignFilterIssues(dimensions: Dimensions, path: Path): ConfigIssue[] {
  const message = 'the dialect "2026" has no such filter, only the grouping: remove it, or use the dialect "interface"';
  return DIMENSIONS.filter((one) => dimensions[one] !== undefined && dimension(one).in2026?.filter === null).map(
    (one) => ({ path: [...path, one], message }),
  );
}

/** The service answers a value it does not know with no usage, which looks like a day without usage. */
function unlistedValueIssues(dimensions: Dimensions, { source }: LenientExport, path: Path): ConfigIssue[] {
  return unlistedValues({ dimensions }, source).map(({ dimension, value, listed }) => {
    const hint =
      didYouMean(value, listed) || '; "checkFeatures": "warn" allows values that the interface does not name';
    const message = `expected ${oneOf(listed)}; got ${describeValue(value)}${hint}`;
    return { path: [...path, dimension], message };
  });
}

function rotationIssues(config: Checked, job: LenientRotation, path: Path): ConfigIssue[] {
  const named = listAtPath(job.projects ?? [], [...path, "projects"]);
  return [
    ...unknownProjectIssues(config, { value: job.project, path: [...path, "project"] }),
    ...named.flatMap((name) => patternIssues(config, name)),
    ...duplicateIssues(named, "each project once"),
    ...renamedDeliveryIssues(config, job, path),
    ...sharedNameIssues(config, job, path),
    ...duplicateIssues(listAtPath(job.scopes, [...path, "scopes"]), "each scope once"),
    ...duplicateIssues(listAtPath(job.tags, [...path, "tags"]), "each tag once"),
    ...expiryIssues(job, path),
    ...(job.projects === undefined
      ? rotationReferenceIssues(config, job.createWith.rotation, job.project, [...path, "createWith", "rotation"])
      : []),
  ];
}

/**
 * Discovered projects have the names that the service lists. One may take over the name of another, and its key would then be delivered
 * over the other's.
 */
function renamedDeliveryIssues(
  { isDiscovering }: Checked,
  { projects = [], deliver }: LenientRotation,
  path: Path,
): ConfigIssue[] {
  if (!isDiscovering || !projects.some((name) => name !== undefined && isPattern(name))) return [];
  const message =
    'expected "{id}" beside "{project}" in it, or in its place: the name of a discovered project may change at the service, and the key of another project would be overwritten';
  return deliver.flatMap(({ file, command }, i) => {
    const texts = file === undefined ? command : [file];
    // Each argument for itself: which of them names the place of the key is not known here.
    return texts.flatMap((text, n) => {
      if (text === undefined || !text.includes("{project}") || text.includes("{id}")) return [];
      return [{ path: [...path, "deliver", i, ...(file === undefined ? ["command", n] : ["file"])], message }];
    });
  });
}

/** The rotations of the projects of a rotation are called NAME/ID in the ledger. */
function sharedNameIssues({ rotations }: Checked, { name }: LenientRotation, path: Path): ConfigIssue[] {
  const group = rotations.find((one) => one.projects !== undefined && name?.startsWith(`${one.name}/`));
  if (group === undefined) return [];
  const message = `expected a name that does not begin with ${JSON.stringify(`${group.name}/`)}: the keys of the projects of that rotation are stored under such names`;
  return [{ path: [...path, "name"], message }];
}

/** A key must not expire before its successor is in use everywhere: nobody would have a working key. */
function expiryIssues(job: LenientRotation, path: Path): ConfigIssue[] {
  const { maxAgeDays = MAX_AGE_DAYS_DEFAULT, graceDays = GRACE_DAYS_DEFAULT, expiresInDays } = job;
  const neededDays = maxAgeDays + graceDays;
  if (expiresInDays === undefined || expiresInDays > neededDays) return [];
  const message = `expected more than ${neededDays} (maxAgeDays ${maxAgeDays} and graceDays ${graceDays}), or the key expires while it is in use; got ${expiresInDays}`;
  return [{ path: [...path, "expiresInDays"], message }];
}

/** A key belongs to one project: a key of another project's rotation can neither read this project nor create keys in it. */
function rotationReferenceIssues(
  { projectNames, rotationNames }: Checked,
  name: string | undefined,
  project: string | undefined,
  path: Path,
): ConfigIssue[] {
  if (name === undefined) return [];
  const rotation = rotationNames.byName.get(name);
  if (!rotation) return unknownNameIssues("a rotation", rotationNames, { value: name, path });
  // A rotation whose project is not configured has an issue of its own.
  const isElsewhere =
    rotation.projects === undefined
      ? rotation.project !== project && projectNames.byName.has(rotation.project ?? "")
      : !rotation.projects.some((one) => one !== undefined && matchesPattern(one, project ?? ""));
  if (!isElsewhere) return [];
  return [{ path, message: "expected a rotation of this project; this one makes the keys of another project" }];
}

/** A pattern must fit a project of the file, unless others are discovered. */
function patternIssues(config: Checked, named: NameAtPath): ConfigIssue[] {
  const { value = "", path } = named;
  const { all, byName } = config.projectNames;
  if (!isPattern(value) || byName.has(value)) return unknownProjectIssues(config, named);
  if (config.isDiscovering || all.some((name) => matchesPattern(value, name))) return [];
  return [{ path, message: `expected a pattern that fits a project (${quoteAll(all)}); got ${describeValue(value)}` }];
}

function unknownProjectIssues({ projects, projectNames, isDiscovering }: Checked, named: NameAtPath): ConfigIssue[] {
  // If no project has a name, that is reported by the schema, and not once more for each path that names a project.
  if (projectNames.all.length === 0 && !isDiscovering) return [];
  const hint = isDiscovering ? '; discovered projects are named by a pattern such as "prod-*"' : "";
  const issues = unknownNameIssues("a project", projectNames, named).map((issue) => ({
    ...issue,
    message: `${issue.message}${hint}`,
  }));
  if (issues.length === 0) return [];
  const byId = projects.find(({ id, name }) => id === named.value && name !== undefined && name !== id);
  if (byId === undefined) return issues;
  const message = `expected the name of a project; got its id; did you mean ${JSON.stringify(byId.name)}?`;
  return [{ path: named.path, message }];
}

/** A delivery replaces its file whatever the file holds, so no two uses may share a file. */
function deliveryIssues({ rotations }: Checked, { baseDir, ownPaths = {} }: CheckOptions): ConfigIssue[] {
  const absolute = (file: string | undefined) => file && path.resolve(baseDir, file);
  const creatorFiles = rotations.map(({ createWith }) => absolute(createWith.file));
  // The files of a rotation of many projects are known only with the projects (rotations.ts).
  const delivered = rotations.flatMap(({ deliver, projects }, i) =>
    (projects === undefined ? deliver : []).map(({ file }, number) => ({
      value: absolute(file),
      path: ["rotations", i, "deliver", number, "file"],
    })),
  );
  const otherUse = (file: string): string | undefined => {
    const own = Object.entries(ownPaths).find(([own]) => file === own || file.startsWith(`${own}${path.sep}`));
    if (own) return own[1];
    if (creatorFiles.includes(file)) return "the file of the key that a rotation creates keys with";
    const other = delivered.find(
      ({ value = "" }) => file.startsWith(value) && TEMPORARY_KEY_FILE.test(file.slice(value.length)),
    );
    return other && `the temporary file of the delivery to ${other.value}`;
  };
  return [
    ...duplicateIssues(delivered, "a file that no other delivery writes"),
    ...delivered.flatMap(({ value, path }) => {
      const use = value && otherUse(value);
      return use ? [{ path, message: `expected a file of its own; got ${use}` }] : [];
    }),
  ];
}

// One filter has one name over all exports. The views identify a filter by its name, the database by its conditions: two names for
// the same conditions would show the same usage twice, and two conditions with one name would show different usage as one.

type FilterAtPath = {
  readonly name: string;
  readonly conditions: string;
  readonly exportIndex: number;
  readonly path: Path;
};

/** Later filters are compared only with filters that have no issue themselves: a wrong one will be changed. */
function filterIssues(exports: readonly LenientExport[]): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const accepted: FilterAtPath[] = [];
  for (const filter of exports.flatMap(filtersOf)) {
    const message = filterProblem(filter, accepted);
    if (message === undefined) accepted.push(filter);
    else issues.push({ path: [...filter.path, "name"], message });
  }
  return issues;
}

function filterProblem(filter: FilterAtPath, earlier: readonly FilterAtPath[]): string | undefined {
  const name = JSON.stringify(filter.name);
  if (filter.name === "all" && filter.conditions !== NO_CONDITIONS) {
    return '"all" is all usage, without conditions: give this filter another name';
  }
  const twice = earlier.find((other) => other.exportIndex === filter.exportIndex && other.name === filter.name);
  if (twice) return `expected each filter of an export once; ${name} is already at ${formatPath(twice.path)}`;

  const otherMeaning = earlier.find((other) => other.name === filter.name && other.conditions !== filter.conditions);
  if (otherMeaning) {
    return `${name} has other conditions at ${formatPath(otherMeaning.path)}: expected one meaning for a name; rename one of them`;
  }
  const otherName = earlier.find((other) => other.conditions === filter.conditions && other.name !== filter.name);
  if (!otherName) return undefined;
  const same = filter.conditions === NO_CONDITIONS ? "no conditions either" : "the same conditions";
  return `${formatPath(otherName.path)} has ${same} and is called ${JSON.stringify(otherName.name)}: expected one name, or the same usage is shown twice; use one of the two`;
}

/** Invalid filters are left out: the schema reports them, and they have no `filterKey`. */
function filtersOf({ filters = [{ name: "all" }] }: LenientExport, exportIndex: number): FilterAtPath[] {
  return filters.flatMap((raw, index) => {
    const { data } = FilterSchema.safeParse(raw);
    if (!data) return [];
    const path = ["exports", exportIndex, "filters", index];
    return [{ name: data.name, conditions: filterKey(data), exportIndex, path }];
  });
}

// Names that must be given once, and names that must exist.

/** `value` is undefined if it is no text, which the schema reports. */
type NameAtPath = { readonly value: string | undefined; readonly path: Path };

function listAtPath(values: readonly (string | undefined)[], path: Path): NameAtPath[] {
  return values.map((value, index) => ({ value, path: [...path, index] }));
}

function fieldsAtPath<Field extends string>(
  list: string,
  field: Field,
  entries: readonly { readonly [name in Field]?: string | undefined }[],
): NameAtPath[] {
  return entries.map((entry, index) => ({ value: entry[field], path: [list, index, field] }));
}

/** One issue for each value that an earlier entry has too. */
function duplicateIssues(named: readonly NameAtPath[], expected: string): ConfigIssue[] {
  const first = new Map<string, Path>();
  return named.flatMap(({ value, path }) => {
    if (value === undefined) return [];
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

function namesOf<Entry extends { readonly name?: string | undefined }>(entries: readonly Entry[]): Names<Entry> {
  const byName = new Map<string, Entry>();
  for (const entry of entries) {
    if (entry.name !== undefined && !byName.has(entry.name)) byName.set(entry.name, entry);
  }
  return { all: [...byName.keys()], byName };
}

function unknownNameIssues(what: string, { all, byName }: Names<unknown>, { value, path }: NameAtPath): ConfigIssue[] {
  if (value === undefined || byName.has(value)) return [];
  const choice = all.length === 0 ? "there is none" : quoteAll(all);
  const message = `expected the name of ${what} (${choice}); got ${describeReceived(path, value)}${didYouMean(value, all)}`;
  return [{ path, message }];
}
