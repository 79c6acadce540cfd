// The schema of a rotation, and the rotations that the program runs: one for each project, also where the file has one for many. Pure.

import path from "node:path";
import { z } from "zod";
import { GRACE_DAYS_DEFAULT, MAX_AGE_DAYS_DEFAULT, type RotationJob, type Sink } from "../keys/policy.ts";
import {
  FilePath,
  JitterSeconds,
  Name,
  object,
  reportingIssues,
  Schedule,
  Timezone,
  template,
  text,
  wholeNumber,
} from "./fields.ts";
import type { Path } from "./json.ts";
import { type ConfigIssue, formatPath } from "./messages.ts";
import { fill, fillProblem, hasPlaceholder, placeholderProblem, projectsNamed } from "./patterns.ts";
import { type KeyReference, KeySource, keyIssues, keyOf } from "./projects.ts";

const CommentTemplate = template(200, ["comment", "id"], (text) =>
  text.includes("{comment}")
    ? undefined
    : 'expected a template with "{comment}", such as "{comment} [{id}]": the keys of a rotation are known by it',
);

const WrittenSink = z
  .union(
    [
      object({
        file: FilePath.describe("The file to replace. A relative path starts at the folder of this file."),
      }),
      object({
        command: z
          .array(text(1000))
          .min(1)
          .describe("The program and its arguments, without a shell. The key comes on standard input."),
        timeoutSeconds: wholeNumber(1, 600).default(30).describe("How long the command may take."),
      }),
    ],
    { error: '{ "file": "PATH" } or { "command": ["PROGRAM", "ARGUMENT"] }' },
  )
  .transform((sink) =>
    "file" in sink ? { kind: "file" as const, path: sink.file } : { kind: "command" as const, ...sink },
  );

const Retire = z
  .union([
    z.enum(["keep", "delete"]),
    object({
      delete: z
        .literal("by-age")
        .describe("Deletes the key even if the service's usage does not tell whether it is in use."),
    }),
  ])
  .transform((retire) => (typeof retire === "string" ? retire : "delete-by-age"));

/** What stands for the project in the deliveries of a rotation of many projects. */
const DELIVERY_PLACEHOLDERS = ["project", "id"];

const Written = object({
  name: Name.describe("The rotation's name, as in `rotate --job NAME`."),
  schedule: Schedule.describe("When to check whether a key is due: as for exports."),
  timezone: Timezone.default("UTC").describe("As for exports."),
  jitterSeconds: JitterSeconds,
  project: Name.exactOptional().describe(
    "The name of the project whose key is rotated. Its key creates the new keys, unless `createWith` names another.",
  ),
  projects: z
    .array(Name)
    .min(1)
    .exactOptional()
    .describe(
      "In place of `project`: the names of the projects that each get a key of their own. A name with * is a pattern: it stands for every project that it fits.",
    ),
  createWith: KeySource.exactOptional().describe(
    "The key that creates, lists and deletes the keys of this rotation, in one of the forms of `projects[].key`. Then only it needs keys:write and keys:read; the rotated keys need project:read and usage:read. Left out: the project's key.",
  ),
  comment: text(200).describe("What the service shows beside the key."),
  commentTemplate: CommentTemplate.default("{comment} [{id}]").describe(
    "How the comment is written; {id} is the program's mark of this one key, by which a key whose secret was lost is found.",
  ),
  scopes: z
    .array(z.string().regex(/^[a-z][a-z0-9:_-]{0,99}$/, 'a scope or role such as "usage:read" or "member"'))
    .min(1)
    .describe(
      "The scopes and roles of the new key. Without `createWith` they include keys:write or a role that has it, such as `member`. `self-hosted:products` creates a self-hosted key.",
    ),
  tags: z.array(text(128)).default([]).describe("The tags of the new key."),
  maxAgeDays: wholeNumber(1, 3650).default(MAX_AGE_DAYS_DEFAULT).describe("The age at which a key is replaced."),
  graceDays: wholeNumber(0, 365)
    .default(GRACE_DAYS_DEFAULT)
    .describe("How long the previous key must not have been seen in use before it is due for removal."),
  expiresInDays: wholeNumber(1, 7300)
    .exactOptional()
    .describe(
      "After how many days the service itself lets the key expire. More than maxAgeDays and graceDays together.",
    ),
  deliver: z.array(WrittenSink).prefault([]).describe("Where the new key is delivered, besides the sealed store."),
  retire: Retire.prefault("keep").describe(
    'What happens to a replaced key after its grace: "keep" lists it as due for removal; "delete" deletes it at the service, once the usage by accessor covers all days of grace, has usage of the last 3 days, tells keys apart and does not show this one; { "delete": "by-age" } also if the usage can\'t tell.',
  ),
});

export const Rotation = Written.superRefine(reportingIssues(problemsOf));

export type WrittenRotation = z.output<typeof Rotation>;

/** What one field of a rotation says about another. */
function problemsOf({ project, projects, deliver }: z.output<typeof Written>): ConfigIssue[] {
  if (projects === undefined) {
    return project === undefined ? [{ path: ["project"], message: 'missing; expected "project" or "projects"' }] : [];
  }
  const both = 'expected either "project" or "projects"; this rotation has both';
  return [
    ...(project === undefined ? [] : [{ path: ["projects"], message: both }]),
    ...deliver.flatMap((sink, i) => {
      const message = deliveryProblem(sink);
      return message === undefined ? [] : [{ path: ["deliver", i, sink.kind], message }];
    }),
  ];
}

function deliveryProblem(sink: Sink): string | undefined {
  const texts = textsOf(sink);
  const unknown = texts.flatMap((one) => placeholderProblem(one, DELIVERY_PLACEHOLDERS) ?? [])[0];
  if (unknown !== undefined) return unknown;
  if (!texts.some(hasPlaceholder)) {
    return 'expected "{project}" or "{id}" in it: otherwise each project would overwrite the key of the one before';
  }
  if (sink.kind === "file" || !hasPlaceholder(texts[0] ?? "")) return undefined;
  return "expected a program without placeholders: they are for its arguments";
}

function textsOf(sink: Sink): readonly string[] {
  return sink.kind === "file" ? [sink.path] : sink.command;
}

export type RotationConfig = RotationJob & {
  /** The key that creates and deletes the rotation's keys; left out, the project's own key does. */
  readonly createWith?: KeyReference;
  /** Its place in the file's list of rotations. */
  readonly index: number;
  /** The name in the file, of a rotation that is there for many projects. */
  readonly group?: string;
};

/** What is needed to make the rotations again when other projects are known. */
export type RotationTemplates = {
  /** All paths are absolute. */
  readonly written: readonly WrittenRotation[];
  /** The program's own files and folders, and what each of them is. No key may be delivered there. */
  readonly ownPaths: Readonly<Record<string, string>>;
};

type Named = { readonly id: string; readonly name: string };

/** Why a rotation of many projects leaves one out. */
export type LeftOut = ConfigIssue & { readonly group: string; readonly project: Named };

/**
 * The name of a project's rotation in the ledger. It has the id, so that a project that is renamed keeps its keys, and the keys of two
 * projects are never in one ledger.
 */
export function rotationName(group: string, { id }: Named): string {
  return `${group}/${id}`;
}

/** The key of a project: that of a rotation of many projects is the one that the rotation makes for this project. */
export function keyOfProject(
  reference: KeyReference,
  written: readonly WrittenRotation[],
  project: Named,
): KeyReference {
  const key = keyOf(reference, project);
  if (key.kind !== "rotation") return key;
  const isGroup = written.some(({ name, projects }) => name === key.rotation && projects !== undefined);
  return isGroup ? { ...key, rotation: rotationName(key.rotation, project) } : key;
}

/**
 * The rotations of these projects. A rotation of many projects leaves one out whose name can't be put into a path or command, or whose key
 * would be written over a file with another use.
 */
export function rotationsOf(
  { written, ownPaths }: RotationTemplates,
  projects: readonly Named[],
): { readonly rotations: readonly RotationConfig[]; readonly leftOut: readonly LeftOut[] } {
  const leftOut: LeftOut[] = [];
  const rotations: RotationConfig[] = [];
  const conflictOf = deliveryConflict(ownPaths, written);
  // Those of one project first: of two that would write one file, the project of a pattern is left out.
  const singleFirst = [...written.entries()].sort(([, a], [, b]) => Number("projects" in a) - Number("projects" in b));
  for (const [index, one] of singleFirst) {
    for (const project of projectsNamed(projects, one.projects ?? [one.project ?? ""])) {
      const issue = fillIssue(one, index, project);
      const rotation = issue ? undefined : rotationOf(one, index, project, written);
      const found = issue ?? (rotation && conflictOf(rotation));
      if (rotation && !found) rotations.push(rotation);
      else if (found) leftOut.push({ ...found, group: one.name, project });
    }
  }
  return { rotations: rotations.sort((a, b) => a.index - b.index), leftOut };
}

function fillIssue(one: WrittenRotation, index: number, project: Named): ConfigIssue | undefined {
  const at: Path = ["rotations", index];
  for (const [i, sink] of one.projects === undefined ? [] : one.deliver.entries()) {
    const message = textsOf(sink).flatMap((text) => fillProblem(text, valuesOf(project)) ?? [])[0];
    if (message !== undefined) return { path: [...at, "deliver", i, sink.kind], message };
  }
  return keyIssues(one.createWith, project, [...at, "createWith"])[0];
}

/** What stands for the project in a delivery. */
function valuesOf({ id, name }: Named) {
  return { project: name, id };
}

function rotationOf(
  one: WrittenRotation,
  index: number,
  project: Named,
  written: readonly WrittenRotation[],
): RotationConfig {
  const { project: _, projects, createWith, ...job } = one;
  const creator = createWith && { createWith: keyOfProject(createWith, written, project) };
  const single = { ...job, index, project, ...creator };
  if (projects === undefined) return single;
  return {
    ...single,
    name: rotationName(job.name, project),
    group: job.name,
    deliver: job.deliver.map((sink) => filledSink(sink, valuesOf(project))),
  };
}

function filledSink(sink: Sink, values: ReturnType<typeof valuesOf>): Sink {
  if (sink.kind === "file") return { kind: "file", path: path.normalize(fill(sink.path, values)) };
  return { ...sink, command: sink.command.map((text) => fill(text, values)) };
}

/** The rotations as they stand in the file: those of many projects once, also if none of their projects is known yet. */
export function writtenRotations({
  rotationTemplates,
  rotations,
}: {
  readonly rotationTemplates?: RotationTemplates;
  readonly rotations: readonly RotationConfig[];
}): readonly (Omit<RotationJob, "project"> & Pick<WrittenRotation, "projects">)[] {
  return rotationTemplates?.written ?? rotations;
}

const CREATOR = "the file of the key that a rotation creates keys with";

/**
 * Returns a function that says why a rotation can't deliver: a delivery replaces its file whatever the file holds. The rotations are given
 * one after the other, and it knows the files of those before.
 */
function deliveryConflict(
  ownPaths: Readonly<Record<string, string>>,
  written: readonly WrittenRotation[],
): (rotation: RotationConfig) => ConfigIssue | undefined {
  const uses = new Map<string, string>();
  for (const { createWith } of written) {
    const creator = createWith?.kind === "rotation" ? createWith.first : createWith;
    if (creator?.kind === "file") uses.set(comparable(creator.path), CREATOR);
  }
  const ownUse = (file: string) => Object.entries(ownPaths).find(([own]) => isIn(file, comparable(own)))?.[1];

  return ({ group, index, deliver, createWith }) => {
    for (const [i, sink] of deliver.entries()) {
      if (sink.kind !== "file") continue;
      const at = ["rotations", index, "deliver", i, "file"];
      const file = comparable(sink.path);
      const isCreator = createWith?.kind === "file" && comparable(createWith.path) === file;
      const use = isCreator ? CREATOR : (ownUse(file) ?? uses.get(file));
      const ofOwn = group === undefined ? "" : " for each project";
      if (use !== undefined) return { path: at, message: `expected a file of its own${ofOwn}; ${sink.path} is ${use}` };
      uses.set(file, `already at ${formatPath(at)}`);
    }
    return undefined;
  };
}

function isIn(file: string, folder: string): boolean {
  return file === folder || file.startsWith(`${folder}${path.sep}`);
}

/** Some file systems take names for the same that differ in case, or in how a letter with an accent is written. */
function comparable(file: string): string {
  return file.normalize("NFC").toLowerCase();
}
