// Makes of each rotation in the file the rotations that the program runs: one for a project, also where the file has one for many. Pure.

import path from "node:path";
import type { RotationJob, Sink } from "../keys/policy.ts";
import type { Path } from "./json.ts";
import { type KeyReference, keyIssues, keyOf } from "./key-source.ts";
import { type ConfigIssue, formatPath } from "./messages.ts";
import { fill, fillProblem, projectsNamed } from "./patterns.ts";
import type { WrittenRotation } from "./rotation-schema.ts";

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

function fillIssue(
  { projects, deliver, createWith }: WrittenRotation,
  index: number,
  project: Named,
): ConfigIssue | undefined {
  const at: Path = ["rotations", index];
  const values = valuesOf(project);
  const filled = projects === undefined ? [] : deliver;
  const ofSinks = filled.flatMap((sink, i) => {
    const texts = sink.kind === "file" ? [sink.path] : sink.command;
    return texts.flatMap((text) => {
      const message = fillProblem(text, values);
      return message === undefined ? [] : [{ path: [...at, "deliver", i, sink.kind], message }];
    });
  });
  return [...ofSinks, ...keyIssues(createWith, project, [...at, "createWith"])][0];
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

// Key files of rotations that have another use, too: a delivery replaces its file whatever the file holds.

/** Temporary files beside a key file, of this version and of earlier ones, which may still run at the same time. */
const TEMPORARY_KEY_FILE = /^\.(?:usage-export-.*|next|probe)$/s;

const CREATOR = "the file of the key that a rotation creates keys with";

type Delivering = {
  readonly group?: string;
  readonly index: number;
  readonly deliver: readonly Sink[];
  readonly createWith?: KeyReference;
};

/** Returns a function that says why a rotation can't deliver, given after those before it, whose files it knows. */
function deliveryConflict(
  ownPaths: Readonly<Record<string, string>>,
  written: readonly WrittenRotation[],
): (rotation: Delivering) => ConfigIssue | undefined {
  const uses = new Map<string, string>();
  /** Files that have a temporary file with the name of a delivered one. */
  const besideTemporary = new Map<string, string>();
  const take = (file: string, use: string) => {
    uses.set(comparable(file), use);
    for (const base of filesWithTemporary(file))
      besideTemporary.set(comparable(base), `a file whose temporary file is ${use}`);
  };
  for (const { createWith } of written) {
    const creator = createWith?.kind === "rotation" ? createWith.first : createWith;
    if (creator?.kind === "file") take(creator.path, CREATOR);
  }

  function useOf(file: string): string | undefined {
    const own = Object.entries(ownPaths).find(([one]) => isIn(comparable(file), comparable(one)));
    if (own) return own[1];
    const taken = uses.get(comparable(file)) ?? besideTemporary.get(comparable(file));
    if (taken !== undefined) return taken;
    const base = filesWithTemporary(file).find((one) => uses.has(comparable(one)));
    return base && `the temporary file of the delivery to ${base}`;
  }

  return ({ group, index, deliver, createWith }) => {
    const ofOwn = group === undefined ? "" : " for each project";
    for (const [i, sink] of deliver.entries()) {
      if (sink.kind !== "file") continue;
      const at = ["rotations", index, "deliver", i, "file"];
      const isCreator = createWith?.kind === "file" && comparable(createWith.path) === comparable(sink.path);
      const use = isCreator ? CREATOR : useOf(sink.path);
      if (use !== undefined) {
        return { path: at, message: `expected a file of its own${ofOwn}; ${sink.path} is ${use}` };
      }
      take(sink.path, `already at ${formatPath(at)}`);
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

/** The key files of which this file would be a temporary file. */
function filesWithTemporary(file: string): readonly string[] {
  return [...file.matchAll(/\.(?=usage-export-|next$|probe$)/g)]
    .filter(({ index }) => TEMPORARY_KEY_FILE.test(file.slice(index)))
    .map(({ index }) => file.slice(0, index));
}
