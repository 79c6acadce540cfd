// Finds key files of rotations that have another use, too: a delivery replaces its file whatever the file holds. Pure.

import path from "node:path";
import type { Sink } from "../keys/policy.ts";
import type { KeyReference } from "./key-source.ts";
import { type ConfigIssue, formatPath } from "./messages.ts";
import type { WrittenRotation } from "./rotation-schema.ts";

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
export function deliveryConflict(
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
