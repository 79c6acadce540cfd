// Checks across fields: what one part of the configuration says of another. Pure; reads the lenient parse, so these issues are
// reported together with those of the schema.

import path from "node:path";
import { GRACE_DAYS_DEFAULT, MAX_AGE_DAYS_DEFAULT } from "../keys/policy.ts";
import { filterKey, NO_CONDITIONS, unlistedValues } from "../usage/series.ts";
import { PLACEHOLDER_ID } from "./fields.ts";
import { dimensionsIn, type LenientConfig, narrowsByFeatureSet } from "./lenient-parse.ts";
import { type ConfigIssue, describeReceived, describeValue, formatPath, type Path } from "./messages.ts";
import { Filter } from "./schema.ts";
import { didYouMean } from "./suggestions.ts";

export function referenceIssues(
  outline: LenientConfig,
  baseDir: string,
  ownPaths: Readonly<Record<string, string>> = {},
): ConfigIssue[] {
  return [
    ...duplicateIssues(fieldValues("projects", "id", outline.projects), "each project once"),
    ...duplicateIssues(fieldValues("projects", "name", outline.projects), "a name that no other project has"),
    ...outline.projects.flatMap((_, index) => projectKeyIssues(outline, index)),
    ...duplicateIssues(fieldValues("exports", "name", outline.exports), "a name that no other export has"),
    ...outline.exports.flatMap((_, index) => exportIssues(outline, index)),
    ...filterIssues(outline),
    ...duplicateIssues(fieldValues("rotations", "name", outline.rotations), "a name that no other rotation has"),
    ...outline.rotations.flatMap((_, index) => rotationIssues(outline, index)),
    ...duplicateIssues(deliveredFiles(outline, baseDir), "a file that no other delivery writes"),
    ...sinkIssues(outline, baseDir, ownPaths),
  ];
}

/** Temporary files beside a key file, of this version and of earlier ones, which may still run at the same time. */
const TEMPORARY_KEY_FILE = /^\.(?:usage-export-.*|next|probe)$/s;

/** A delivery replaces its file whatever the file holds, so no two uses may share a file. */
function sinkIssues(
  outline: LenientConfig,
  baseDir: string,
  ownPaths: Readonly<Record<string, string>>,
): ConfigIssue[] {
  const files = deliveredFiles(outline, baseDir);
  const creators = outline.rotations.map(({ createWith: { file } }) => file && path.resolve(baseDir, file));
  const clash = (file: string): string | undefined => {
    for (const [own, what] of Object.entries(ownPaths)) {
      if (file === own || file.startsWith(`${own}${path.sep}`)) return what;
    }
    if (creators.includes(file)) return "the key that a rotation creates with";
    const other = files.find(
      ({ value = "" }) => file.startsWith(value) && TEMPORARY_KEY_FILE.test(file.slice(value.length)),
    );
    return other && `what the delivery to ${other.value} writes on its way`;
  };
  return files.flatMap(({ value, path: at }) => {
    const what = typeof value === "string" ? clash(value) : undefined;
    return what === undefined ? [] : [{ path: at, message: `expected a file of its own; got ${what}` }];
  });
}

export function placeholderIssues({ projects }: LenientConfig): ConfigIssue[] {
  return projects.flatMap(({ id }, index) =>
    id === PLACEHOLDER_ID
      ? [
          {
            path: ["projects", index, "id"],
            message: `expected your project's id at the service, which its console shows; "${PLACEHOLDER_ID}" only holds its place`,
          },
        ]
      : [],
  );
}

/** A key belongs to one project: the rotation of another would deliver one that reads nothing here. */
function projectKeyIssues({ projects, rotations }: LenientConfig, index: number): ConfigIssue[] {
  const project = projects[index];
  const name = project?.key.rotation;
  const at = ["projects", index, "key", "rotation"];
  const rotation = rotations.find((each) => each.name === name);
  if (!rotation) return unknownNameIssues("a rotation", namesOf(rotations), { value: name, path: at });
  if (rotation.project === undefined || rotation.project === project?.name) return [];
  return [{ path: at, message: "expected a rotation of this project; this one makes the keys of another project" }];
}

function exportIssues({ service, projects, exports }: LenientConfig, index: number): ConfigIssue[] {
  const job = exports[index];
  if (!job) return [];
  const at = ["exports", index];
  return [
    ...listEntries(job.projects, [...at, "projects"]).flatMap((entry) => unknownProjectIssues(projects, entry)),
    ...duplicateIssues(listEntries(job.projects, [...at, "projects"]), "each project once"),
    ...duplicateIssues(listEntries(job.groupings, [...at, "groupings"]), "each grouping once"),
    ...(service.dialect === "2026" ? featureSetIssues(job, index) : []),
    ...undatedIssues(job, index),
    ...(job.checkFeatures === undefined || job.checkFeatures === "error" ? dimensionValueIssues(job, index) : []),
  ];
}

/** With a window, an answer that names no day is refused, so "undated" would have no effect. */
function undatedIssues({ window, undated }: LenientConfig["exports"][number], index: number): ConfigIssue[] {
  if (window === undefined || undated === undefined || undated === "snapshot") return [];
  const message = `expected no "undated" beside "window": an answer to a window names its days; got ${JSON.stringify(undated)}`;
  return [{ path: ["exports", index, "undated"], message }];
}

function featureSetIssues(job: LenientConfig["exports"][number], index: number): ConfigIssue[] {
  const message = 'the dialect "2026" has no such filter, only the grouping: remove it, or use the dialect "interface"';
  return (job.filters ?? []).flatMap((filter, number) =>
    narrowsByFeatureSet(filter)
      ? [{ path: ["exports", index, "filters", number, "dimensions", "feature_set"], message }]
      : [],
  );
}

/** The service answers a value it does not know with no usage, which looks like a day without usage. */
function dimensionValueIssues(job: LenientConfig["exports"][number], index: number): ConfigIssue[] {
  return (job.filters ?? []).flatMap((filter, number) =>
    unlistedValues({ dimensions: dimensionsIn(filter) }).map(({ dimension, value, listed }) => {
      const guess = didYouMean(value, listed);
      const hint = '; "checkFeatures": "warn" asks for what the interface does not name';
      const expected = listed.map((name) => JSON.stringify(name)).join(", ");
      return {
        path: ["exports", index, "filters", number, "dimensions", dimension],
        message: `expected one of ${expected}; got ${describeValue(value)}${guess === "" ? hint : guess}`,
      };
    }),
  );
}

function rotationIssues({ projects, rotations }: LenientConfig, index: number): ConfigIssue[] {
  const rotation = rotations[index];
  if (!rotation) return [];
  const at = ["rotations", index];
  return [
    ...unknownProjectIssues(projects, { value: rotation.project, path: [...at, "project"] }),
    ...duplicateIssues(listEntries(rotation.scopes, [...at, "scopes"]), "each scope once"),
    ...duplicateIssues(listEntries(rotation.tags, [...at, "tags"]), "each tag once"),
    ...expiryIssues(rotation, index),
    ...createWithIssues(rotation, rotations, projects, index),
  ];
}

/** A key that dies before its successor has taken over and the old one is out of use leaves nobody with a working key. */
function expiryIssues(rotation: LenientConfig["rotations"][number], index: number): ConfigIssue[] {
  const { maxAgeDays = MAX_AGE_DAYS_DEFAULT, graceDays = GRACE_DAYS_DEFAULT, expiresInDays } = rotation;
  const neededDays = maxAgeDays + graceDays;
  if (expiresInDays === undefined || expiresInDays > neededDays) return [];
  return [
    {
      path: ["rotations", index, "expiresInDays"],
      message: `expected more than ${neededDays} (maxAgeDays ${maxAgeDays} and graceDays ${graceDays}), or the key dies while it is in use; got ${expiresInDays}`,
    },
  ];
}

/** A key of another project can't create keys in this one. */
function createWithIssues(
  { project, createWith }: LenientConfig["rotations"][number],
  rotations: LenientConfig["rotations"],
  projects: LenientConfig["projects"],
  index: number,
): ConfigIssue[] {
  const name = createWith.rotation;
  if (name === undefined) return [];
  const at = ["rotations", index, "createWith", "rotation"];
  const rotation = rotations.find((each) => each.name === name);
  if (!rotation) return unknownNameIssues("a rotation", namesOf(rotations), { value: name, path: at });
  if (rotation.project === project || !namesOf(projects).includes(rotation.project)) return [];
  return [{ path: at, message: "expected a rotation of this project; this one makes the keys of another project" }];
}

function unknownProjectIssues(projects: LenientConfig["projects"], named: NameAtPath): ConfigIssue[] {
  // Without any project the fault is there, and not at each place that names one.
  if (namesOf(projects).every((name) => name === undefined)) return [];
  const byId = projects.find(({ id, name }) => id === named.value && name !== undefined && name !== id);
  const faults = unknownNameIssues("a project", namesOf(projects), named);
  if (faults.length === 0 || byId === undefined) return faults;
  return [
    {
      path: named.path,
      message: `expected the name of a project; got its id; did you mean ${JSON.stringify(byId.name)}?`,
    },
  ];
}

function deliveredFiles({ rotations }: LenientConfig, baseDir: string): NameAtPath[] {
  return rotations.flatMap(({ deliver }, index) =>
    deliver.map(({ file }, number) => ({
      value: file === undefined ? undefined : path.resolve(baseDir, file),
      path: ["rotations", index, "deliver", number, "file"],
    })),
  );
}

function fieldValues<Field extends string>(
  list: string,
  field: Field,
  entries: readonly { readonly [name in Field]?: string | undefined }[],
): NameAtPath[] {
  return entries.map((entry, index) => ({ value: entry[field], path: [list, index, field] }));
}

function namesOf(entries: readonly { readonly name?: string | undefined }[]): (string | undefined)[] {
  return entries.map(({ name }) => name);
}

// One filter has one name over all exports. The views know a filter by its name and the database by its conditions, so two
// names would show the same usage twice, and two meanings would show different usage as one. Pure.

type FilterAtPath = {
  readonly name: string;
  readonly conditions: string;
  readonly exportIndex: number;
  readonly path: Path;
};

/** A filter with a fault is no measure for the next ones: its mend would be a fault of theirs. */
function filterIssues(outline: LenientConfig): ConfigIssue[] {
  const faults: ConfigIssue[] = [];
  const sound: FilterAtPath[] = [];
  for (const filter of outline.exports.flatMap(filtersOf)) {
    const message = filterProblem(filter, sound);
    if (message === undefined) sound.push(filter);
    else faults.push({ path: [...filter.path, "name"], message });
  }
  return faults;
}

function filterProblem(filter: FilterAtPath, earlier: readonly FilterAtPath[]): string | undefined {
  const name = JSON.stringify(filter.name);
  if (filter.name === "all" && filter.conditions !== NO_CONDITIONS) {
    return '"all" is all usage, without conditions: give this filter another name';
  }
  const twice = earlier.find((other) => other.exportIndex === filter.exportIndex && other.name === filter.name);
  if (twice) return `expected each filter of an export once; ${name} stands at ${formatPath(twice.path)} already`;

  const otherMeaning = earlier.find((other) => other.name === filter.name && other.conditions !== filter.conditions);
  if (otherMeaning) {
    return `${name} has other conditions at ${formatPath(otherMeaning.path)}: expected one meaning for a name; rename one of them`;
  }
  const otherName = earlier.find((other) => other.conditions === filter.conditions && other.name !== filter.name);
  if (!otherName) return undefined;
  const same = filter.conditions === NO_CONDITIONS ? "no conditions either" : "the same conditions";
  return `${formatPath(otherName.path)} has ${same} and is called ${JSON.stringify(otherName.name)}: expected one name, or the same usage is shown twice; use one of the two`;
}

function filtersOf(job: LenientConfig["exports"][number], exportIndex: number): FilterAtPath[] {
  const path = ["exports", exportIndex, "filters"];
  const raw = job.filters ?? [{ name: "all" }];
  return raw.flatMap((value, index) => {
    // A filter that is wrong in itself is named by the shape, and has no identity yet.
    const parsed = Filter.safeParse(value);
    if (!parsed.success) return [];
    const { name, features, dimensions } = parsed.data;
    return [
      {
        name,
        conditions: filterKey({ name, features, dimensions }),
        exportIndex,
        path: [...path, index],
      },
    ];
  });
}

// Names that must be given once, and names that must exist. Pure.

/** A value and where it stands; undefined where the shape has found something else than text. */
type NameAtPath = { readonly value: string | undefined; readonly path: Path };

/** One fault for each value that was there before. */
function duplicateIssues(named: readonly NameAtPath[], what: string): ConfigIssue[] {
  const first = new Map<string, Path>();
  return named.flatMap(({ value, path }) => {
    if (value === undefined) return [];
    const earlier = first.get(value);
    if (earlier === undefined) {
      first.set(value, path);
      return [];
    }
    return [
      {
        path,
        message: `expected ${what}; got ${describeReceived(path, value)}, which stands at ${formatPath(earlier)} already`,
      },
    ];
  });
}

/** A reference to something that is not there. */
function unknownNameIssues(
  what: string,
  known: readonly (string | undefined)[],
  { value, path }: NameAtPath,
): ConfigIssue[] {
  const names = [...new Set(known)].filter((name) => name !== undefined);
  if (value === undefined || names.includes(value)) return [];
  const listed = names.length === 0 ? "there is none" : names.map((name) => JSON.stringify(name)).join(", ");
  return [
    {
      path,
      message: `expected the name of ${what} (${listed}); got ${describeReceived(path, value)}${didYouMean(value, names)}`,
    },
  ];
}

/** The entries of a list, each with its place. */
function listEntries(values: readonly (string | undefined)[], path: Path): NameAtPath[] {
  return values.map((value, index) => ({ value, path: [...path, index] }));
}
