// What one part of the configuration says of another. Pure; reads the outline, so it finds its faults beside those of the
// shape.

import path from "node:path";
import { unlistedValues } from "../usage/features.ts";
import { type Fault, shown } from "./fault.ts";
import { filterFaults } from "./filter-identity.ts";
import { entriesOf, type Named, repeats, unknown } from "./names.ts";
import { didYouMean } from "./near-miss.ts";
import { dimensionsIn, narrowsByFeatureSet, type Outline } from "./outline.ts";
import { GRACE_DAYS_DEFAULT, MAX_AGE_DAYS_DEFAULT } from "./rotation-shape.ts";

export function referenceFaults(
  outline: Outline,
  baseDir: string,
  ownPaths: Readonly<Record<string, string>> = {},
): Fault[] {
  return [
    ...repeats(fieldOf("projects", "id", outline.projects), "each project once"),
    ...repeats(fieldOf("projects", "name", outline.projects), "a name that no other project has"),
    ...outline.projects.flatMap((_, index) => keyFaults(outline, index)),
    ...repeats(fieldOf("exports", "name", outline.exports), "a name that no other export has"),
    ...outline.exports.flatMap((_, index) => exportFaults(outline, index)),
    ...filterFaults(outline),
    ...repeats(fieldOf("rotations", "name", outline.rotations), "a name that no other rotation has"),
    ...outline.rotations.flatMap((_, index) => rotationFaults(outline, index)),
    ...repeats(filesOf(outline, baseDir), "a file that no other delivery writes"),
    ...sinkFaults(outline, baseDir, ownPaths),
  ];
}

/** Temporary files beside a key file, of this version and of earlier ones, which may still run at the same time. */
const HELPER = /^\.(?:usage-export-.*|next|probe)$/s;

/** A delivery replaces its file whatever the file holds, so no two uses may share a file. */
function sinkFaults(outline: Outline, baseDir: string, ownPaths: Readonly<Record<string, string>>): Fault[] {
  const files = filesOf(outline, baseDir);
  const creators = outline.rotations.map(({ createWith: { file } }) => file && path.resolve(baseDir, file));
  const clash = (file: string): string | undefined => {
    for (const [own, what] of Object.entries(ownPaths)) {
      if (file === own || file.startsWith(`${own}${path.sep}`)) return what;
    }
    if (creators.includes(file)) return "the key that a rotation creates with";
    const other = files.find(({ value = "" }) => file.startsWith(value) && HELPER.test(file.slice(value.length)));
    return other && `what the delivery to ${other.value} writes on its way`;
  };
  return files.flatMap(({ value, path: at }) => {
    const what = typeof value === "string" ? clash(value) : undefined;
    return what === undefined ? [] : [{ path: at, message: `expected a file of its own; got ${what}` }];
  });
}

/** The project id in the packaged example. The service answers it with 404, or with the usage of somebody else. */
export const PLACEHOLDER_ID = "PROJECT_ID";

export function placeholderFaults({ projects }: Outline): Fault[] {
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
function keyFaults({ projects, rotations }: Outline, index: number): Fault[] {
  const project = projects[index];
  const name = project?.key.rotation;
  const at = ["projects", index, "key", "rotation"];
  const rotation = rotations.find((each) => each.name === name);
  if (!rotation) return unknown("a rotation", namesOf(rotations), { value: name, path: at });
  if (rotation.project === undefined || rotation.project === project?.name) return [];
  return [{ path: at, message: "expected a rotation of this project; this one makes the keys of another project" }];
}

function exportFaults({ service, projects, exports }: Outline, index: number): Fault[] {
  const job = exports[index];
  if (!job) return [];
  const at = ["exports", index];
  return [
    ...entriesOf(job.projects, [...at, "projects"]).flatMap((entry) => unknownProject(projects, entry)),
    ...repeats(entriesOf(job.projects, [...at, "projects"]), "each project once"),
    ...repeats(entriesOf(job.groupings, [...at, "groupings"]), "each grouping once"),
    ...(service.dialect === "2026" ? featureSetFaults(job, index) : []),
    ...undatedFaults(job, index),
    ...(job.checkFeatures === undefined || job.checkFeatures === "error" ? valueFaults(job, index) : []),
  ];
}

/** With a window, an answer that names no day is refused, so "undated" would have no effect. */
function undatedFaults({ window, undated }: Outline["exports"][number], index: number): Fault[] {
  if (window === undefined || undated === undefined || undated === "snapshot") return [];
  const message = `expected no "undated" beside "window": an answer to a window names its days; got ${JSON.stringify(undated)}`;
  return [{ path: ["exports", index, "undated"], message }];
}

function featureSetFaults(job: Outline["exports"][number], index: number): Fault[] {
  const message = 'the dialect "2026" has no such filter, only the grouping: remove it, or use the dialect "interface"';
  return (job.filters ?? []).flatMap((filter, number) =>
    narrowsByFeatureSet(filter)
      ? [{ path: ["exports", index, "filters", number, "dimensions", "feature_set"], message }]
      : [],
  );
}

/** The service answers a value it does not know with no usage, which looks like a day without usage. */
function valueFaults(job: Outline["exports"][number], index: number): Fault[] {
  return (job.filters ?? []).flatMap((filter, number) =>
    unlistedValues({ dimensions: dimensionsIn(filter) }).map(({ dimension, value, listed }) => {
      const guess = didYouMean(value, listed);
      const hint = '; "checkFeatures": "warn" asks for what the interface does not name';
      const expected = listed.map((name) => JSON.stringify(name)).join(", ");
      return {
        path: ["exports", index, "filters", number, "dimensions", dimension],
        message: `expected one of ${expected}; got ${shown(value)}${guess === "" ? hint : guess}`,
      };
    }),
  );
}

function rotationFaults({ projects, rotations }: Outline, index: number): Fault[] {
  const rotation = rotations[index];
  if (!rotation) return [];
  const at = ["rotations", index];
  return [
    ...unknownProject(projects, { value: rotation.project, path: [...at, "project"] }),
    ...repeats(entriesOf(rotation.scopes, [...at, "scopes"]), "each scope once"),
    ...repeats(entriesOf(rotation.tags, [...at, "tags"]), "each tag once"),
    ...expiryFaults(rotation, index),
    ...creatorFaults(rotation, rotations, projects, index),
  ];
}

/** A key that dies before its successor has taken over and the old one is out of use leaves nobody with a working key. */
function expiryFaults(rotation: Outline["rotations"][number], index: number): Fault[] {
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
function creatorFaults(
  { project, createWith }: Outline["rotations"][number],
  rotations: Outline["rotations"],
  projects: Outline["projects"],
  index: number,
): Fault[] {
  const name = createWith.rotation;
  if (name === undefined) return [];
  const at = ["rotations", index, "createWith", "rotation"];
  const rotation = rotations.find((each) => each.name === name);
  if (!rotation) return unknown("a rotation", namesOf(rotations), { value: name, path: at });
  if (rotation.project === project || !namesOf(projects).includes(rotation.project)) return [];
  return [{ path: at, message: "expected a rotation of this project; this one makes the keys of another project" }];
}

function unknownProject(projects: Outline["projects"], named: Named): Fault[] {
  // Without any project the fault is there, and not at each place that names one.
  if (namesOf(projects).every((name) => name === undefined)) return [];
  const byId = projects.find(({ id, name }) => id === named.value && name !== undefined && name !== id);
  const faults = unknown("a project", namesOf(projects), named);
  if (faults.length === 0 || byId === undefined) return faults;
  return [
    {
      path: named.path,
      message: `expected the name of a project; got its id; did you mean ${JSON.stringify(byId.name)}?`,
    },
  ];
}

function filesOf({ rotations }: Outline, baseDir: string): Named[] {
  return rotations.flatMap(({ deliver }, index) =>
    deliver.map(({ file }, number) => ({
      value: file === undefined ? undefined : path.resolve(baseDir, file),
      path: ["rotations", index, "deliver", number, "file"],
    })),
  );
}

function fieldOf<Field extends string>(
  list: string,
  field: Field,
  entries: readonly { readonly [name in Field]?: string | undefined }[],
): Named[] {
  return entries.map((entry, index) => ({ value: entry[field], path: [list, index, field] }));
}

function namesOf(entries: readonly { readonly name?: string | undefined }[]): (string | undefined)[] {
  return entries.map(({ name }) => name);
}
