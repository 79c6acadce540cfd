// The schema of a rotation in the file, and the rotations that the program runs: one for each project. Pure.

import { z } from "zod";
import type { Project } from "../usage/series.ts";
import { FilePath, Name, object, Schedule, Timezone, text, wholeNumber } from "./fields.ts";
import type { ConfigIssue } from "./json.ts";
import { formatPath } from "./messages.ts";
import { fillInId, type KeyReference, KeySource, projectsNamed } from "./projects.ts";

const Sink = z.union(
  [
    object({ file: FilePath.describe("The file to replace. A relative path starts at the folder of this file.") }),
    object({
      command: z
        .array(text(1000))
        .min(1)
        .describe("The program and its arguments, without a shell. The key comes on standard input."),
      timeoutSeconds: wholeNumber(1, 600).default(30).describe("How long the command may take."),
    }),
  ],
  { error: '{ "file": "PATH" } or { "command": ["PROGRAM", "ARGUMENT"] }' },
);

export const RotationInFile = object({
  name: Name.describe("The rotation's name, as in `rotate --job NAME`."),
  schedule: Schedule.describe("When to check whether a key must be replaced: a cron expression."),
  timezone: Timezone.default("UTC").describe("The schedule's time zone."),
  project: Name.exactOptional().describe("The name of the project whose key is rotated."),
  projects: z
    .array(Name)
    .min(1)
    .exactOptional()
    .describe("In place of `project`: names or patterns of projects, each of which gets its own key."),
  createWith: KeySource.exactOptional().describe("The key that creates and deletes keys. Left out: the project's key."),
  comment: text(200).describe("The key's comment at the service; the program appends an id to it."),
  scopes: z
    .array(z.string().regex(/^[a-z][a-z0-9:_-]{0,99}$/, 'a scope or role such as "usage:read" or "member"'))
    .min(1)
    .describe("The scopes and roles of the new key. Without `createWith`, one of them must hold keys:write."),
  tags: z.array(text(128)).default([]).describe("The tags of the new key."),
  maxAgeDays: wholeNumber(1, 3650).default(30).describe("The age at which a key is replaced."),
  graceDays: wholeNumber(0, 365)
    .default(7)
    .describe("How long a replaced key must be unused before it is due for removal."),
  expiresInDays: wholeNumber(1, 7300).exactOptional().describe("After how many days the service lets the key expire."),
  deliver: z.array(Sink).prefault([]).describe("Where the new key is delivered, besides the sealed store."),
  retire: z
    .enum(["keep", "delete"])
    .default("keep")
    .describe('A replaced key after its grace: "keep" reports that it can be removed, "delete" deletes it.'),
});

export type RotationInFile = z.output<typeof RotationInFile>;

export type Sink = z.output<typeof Sink>;

/** A rotation for one project. `name` is its name in the ledger. */
export type RotationConfig = Readonly<Omit<RotationInFile, "project" | "projects" | "createWith">> & {
  /** The name in the file, if it differs from `name`. */
  readonly jobName?: string;
  readonly project: Project;
  readonly createWith?: KeyReference;
};

export function jobNameOf({ jobName, name }: Pick<RotationConfig, "jobName" | "name">): string {
  return jobName ?? name;
}

/** The project's id is in the name, so a renamed project keeps its keys. */
function ledgerName(jobName: string, { id }: Project): string {
  return `${jobName}/${id}`;
}

/** Puts the project's id into the reference. A reference to a rotation of many projects then names this project's own rotation. */
export function keyOfProject(reference: KeyReference, rotations: readonly RotationInFile[], project: Project) {
  const key = fillInId(reference, project.id);
  if (!("rotation" in key)) return key;
  const isForMany = rotations.some(({ name, projects }) => name === key.rotation && projects !== undefined);
  return isForMany ? { ...key, rotation: ledgerName(key.rotation, project) } : key;
}

/** `project` is a name and never a pattern: with a pattern, the keys of several projects would have one name in the ledger. */
function projectsOf({ project, projects: names }: RotationInFile, projects: readonly Project[]): Project[] {
  if (names) return projectsNamed(projects, names);
  return projects.filter(({ name }) => name === project).map(({ id, name }) => ({ id, name }));
}

export function rotationsOf(rotations: readonly RotationInFile[], projects: readonly Project[]) {
  return rotations.flatMap((inFile) => {
    const { project: _, projects: names, createWith, ...job } = inFile;
    return projectsOf(inFile, projects).map((project): RotationConfig => {
      const creator = createWith && { createWith: keyOfProject(createWith, rotations, project) };
      const rotation = { ...job, project, ...creator };
      if (names === undefined) return rotation;
      const deliver = job.deliver.map((sink) => fillInId(sink, project.id));
      return { ...rotation, name: ledgerName(job.name, project), jobName: job.name, deliver };
    });
  });
}

/** Reports each delivery to a file that has another use. Paths that still have "{id}" are compared, too: projects may be discovered later. */
export function deliveryIssues(rotations: readonly RotationInFile[], projects: readonly Project[]): ConfigIssue[] {
  const filesOf = (location: { readonly file: string }, chosen: readonly Project[]) =>
    [location, ...chosen.map(({ id }) => fillInId(location, id))].map(({ file }) => file);
  const uses = new Map<string, string>();
  for (const rotation of rotations) {
    const { createWith } = rotation;
    const creator = createWith && "rotation" in createWith ? createWith.first : createWith;
    if (!creator || !("file" in creator)) continue;
    const use = "the file of the key that a rotation creates keys with";
    for (const file of filesOf(creator, projectsOf(rotation, projects))) uses.set(file, use);
  }
  const found: ConfigIssue[] = [];
  for (const [index, { deliver, projects: names = [] }] of rotations.entries()) {
    for (const [i, sink] of deliver.entries()) {
      if (!("file" in sink)) continue;
      const path = ["rotations", index, "deliver", i, "file"];
      const files = filesOf(sink, projectsNamed(projects, names));
      const used = files.find((file) => uses.has(file));
      if (used !== undefined) found.push({ path, message: `expected a file of its own; ${used} is ${uses.get(used)}` });
      for (const file of files) if (!uses.has(file)) uses.set(file, `already at ${formatPath(path)}`);
    }
  }
  return found;
}
