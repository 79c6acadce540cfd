// The schema of a rotation in the file, and the rotations that the program runs: one for each project. Pure.

import { z } from "zod";
import type { Project } from "../usage/series.ts";
import { FilePath, Name, object, Schedule, Timezone, text, wholeNumber } from "./fields.ts";
import type { ConfigIssue } from "./json.ts";
import { formatPath } from "./messages.ts";
import { type KeyReference, KeySource, projectsNamed, withId } from "./projects.ts";

const WrittenSink = z.union(
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

export const Rotation = object({
  name: Name.describe("The rotation's name, as in `rotate --job NAME`."),
  schedule: Schedule.describe("When to check whether a key is due: as for exports."),
  timezone: Timezone.default("UTC").describe("As for exports."),
  project: Name.exactOptional().describe("The name of the project whose key is rotated."),
  projects: z
    .array(Name)
    .min(1)
    .exactOptional()
    .describe("In place of `project`: names or patterns of projects that each get a key."),
  createWith: KeySource.exactOptional().describe("The key that creates and deletes keys. Left out: the project's key."),
  comment: text(200).describe("What the service shows beside the key, before the program's own mark."),
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
  deliver: z.array(WrittenSink).prefault([]).describe("Where the new key is delivered, besides the sealed store."),
  retire: z
    .enum(["keep", "delete"])
    .default("keep")
    .describe('A replaced key after its grace: "keep" lists it, "delete" deletes it at the service.'),
});

export type WrittenRotation = z.output<typeof Rotation>;

export type Sink = z.output<typeof WrittenSink>;

/** A rotation for one project. `name` is its name in the ledger. */
export type RotationConfig = Readonly<Omit<WrittenRotation, "project" | "projects" | "createWith">> & {
  /** The name in the file; left out if that is `name`. */
  readonly jobName?: string;
  readonly project: Project;
  readonly createWith?: KeyReference;
};

export function jobNameOf({ jobName, name }: Pick<RotationConfig, "jobName" | "name">): string {
  return jobName ?? name;
}

/** The name has the project's id, so that a project that is renamed keeps its keys. */
function ledgerName(jobName: string, { id }: Project): string {
  return `${jobName}/${id}`;
}

/** Puts the project's id into the reference. A rotation of many projects is replaced by this project's own one. */
export function keyOfProject(reference: KeyReference, written: readonly WrittenRotation[], project: Project) {
  const key = withId(reference, project.id);
  if (!("rotation" in key)) return key;
  const isForMany = written.some(({ name, projects }) => name === key.rotation && projects !== undefined);
  return isForMany ? { ...key, rotation: ledgerName(key.rotation, project) } : key;
}

/** A single `project` is never a pattern: the keys of several projects would have one name in the ledger. */
function projectsOf({ project, projects: names }: WrittenRotation, projects: readonly Project[]): Project[] {
  if (names) return projectsNamed(projects, names);
  return projects.filter(({ name }) => name === project).map(({ id, name }) => ({ id, name }));
}

export function rotationsOf(written: readonly WrittenRotation[], projects: readonly Project[]) {
  return written.flatMap((inFile) => {
    const { project: _, projects: names, createWith, ...job } = inFile;
    return projectsOf(inFile, projects).map((project): RotationConfig => {
      const creator = createWith && { createWith: keyOfProject(createWith, written, project) };
      const rotation = { ...job, project, ...creator };
      if (names === undefined) return rotation;
      const deliver = job.deliver.map((sink) => withId(sink, project.id));
      return { ...rotation, name: ledgerName(job.name, project), jobName: job.name, deliver };
    });
  });
}

/** Reports each delivery to a file that has another use already. Paths are compared with "{id}", too: projects may be discovered later. */
export function deliveryIssues(written: readonly WrittenRotation[], projects: readonly Project[]): ConfigIssue[] {
  const filesOf = (place: { readonly file: string }, chosen: readonly Project[]) =>
    [place, ...chosen.map(({ id }) => withId(place, id))].map(({ file }) => file);
  const uses = new Map<string, string>();
  for (const rotation of written) {
    const { createWith } = rotation;
    const creator = createWith && "rotation" in createWith ? createWith.first : createWith;
    if (!creator || !("file" in creator)) continue;
    const use = "the file of the key that a rotation creates keys with";
    for (const file of filesOf(creator, projectsOf(rotation, projects))) uses.set(file, use);
  }
  return written.flatMap(({ deliver, projects: names = [] }, index) =>
    deliver.flatMap((sink, i) => {
      if (!("file" in sink)) return [];
      const path = ["rotations", index, "deliver", i, "file"];
      const files = filesOf(sink, projectsNamed(projects, names));
      const used = files.find((file) => uses.has(file));
      if (used !== undefined) return [{ path, message: `expected a file of its own; ${used} is ${uses.get(used)}` }];
      for (const file of files) uses.set(file, `already at ${formatPath(path)}`);
      return [];
    }),
  );
}
