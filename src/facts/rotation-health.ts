// The health of rotations: their keys and their failures. A rotation of many projects is shown as one.

import type { Config } from "../config/config.ts";
import { writtenRotations } from "../config/rotations.ts";
import type { Tx } from "../db/connection/transaction.ts";
import { type RotationRow, rotationRows } from "../db/keys/status.ts";
import type { RotationJob } from "../keys/policy.ts";

export type RotationHealth = RotationRow & {
  /** Undefined if it is not configured any more. */
  readonly configured: Pick<RotationJob, "maxAgeDays" | "retire"> | undefined;
};

/** A rotation of one project; of many projects there is one for each. */
export type ProjectRotationHealth = RotationHealth & { readonly project?: string | undefined };

/** Nobody can end the failures of a rotation that is not configured any more. */
const NO_FAILURES = { failedAttempts: 0, lastError: null, fallback: null, fallbackAt: null };

export async function rotationHealth(tx: Tx, config: Config): Promise<readonly ProjectRotationHealth[]> {
  const settings = new Map(writtenRotations(config).map((one) => [one.name, one]));
  const writtenNameOf = writtenNames(config);
  return (await rotationRows(tx)).map((row) => {
    const { rotation, project } = writtenNameOf(row.rotation, row.projectId);
    const configured = settings.get(rotation);
    return { ...row, ...(configured ? {} : NO_FAILURES), rotation, project, configured };
  });
}

type WrittenName = { readonly rotation: string; readonly project?: string };

/**
 * Finds the name in the configuration, and of a rotation of many projects the project, by the name in the ledger. The rotations of
 * projects that are gone are one: each was called after its rotation and its project, and is not configured any more.
 */
export function writtenNames(
  config: Pick<Config, "rotations" | "writtenForMany">,
): (ledgerName: string, projectId: string | null) => WrittenName {
  const { rotations, writtenForMany } = config;
  const known = new Map<string, WrittenName>(
    rotations.map(({ name, group, project }) => [
      name,
      group ? { rotation: group, project: project.name } : { rotation: name },
    ]),
  );
  const ofMany = writtenForMany?.flatMap(({ name, projects }) => (projects ? [name] : [])) ?? [];
  return (ledgerName, projectId) => {
    const isMember = projectId !== null && ledgerName.endsWith(`/${projectId}`);
    const former = isMember
      ? ledgerName.slice(0, -projectId.length - 1)
      : ofMany.find((name) => ledgerName.startsWith(`${name}/`));
    const gone = former !== undefined && {
      rotation: `${former}, projects that are gone`,
      project: ledgerName.slice(former.length + 1),
    };
    return known.get(ledgerName) ?? (gone || { rotation: ledgerName });
  };
}

/** Puts one entry in the place of the first of those that are of one rotation of many projects. */
export function mergeProjects<Merged, Entry extends Merged & { readonly project?: string | undefined }>(
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string,
  merge: (members: readonly Entry[], first: Entry) => Merged,
): readonly Merged[] {
  const groups = Map.groupBy(entries, (entry) => (entry.project === undefined ? entry : nameOf(entry)));
  return [...groups.values()].flatMap((members): readonly Merged[] => {
    const [first] = members;
    return first === undefined || first.project === undefined ? members : [merge(members, first)];
  });
}

/** The numbers are the highest of the projects, and of keys the sum. */
export function mergeRotations(rotations: readonly ProjectRotationHealth[]): readonly RotationHealth[] {
  return mergeProjects(
    rotations,
    ({ rotation }) => rotation,
    (members, { project: _, ...first }): RotationHealth => {
      const worst = members.reduce((a, b) => (b.failedAttempts > a.failedAttempts ? b : a));
      const newest = members.reduce((a, b) => (Number(b.fallbackAt) > Number(a.fallbackAt) ? b : a));
      const sum = (state: keyof RotationRow["keys"]) => members.reduce((total, { keys }) => total + keys[state], 0);
      return {
        ...first,
        projects: members.length,
        // Each project has its own.
        ...{ apiKeyId: null, projectId: null },
        ...{
          ageDays: highest(members.map(({ ageDays }) => ageDays)),
          ageSeconds: highest(members.map((one) => one.ageSeconds)),
        },
        ...{ failedAttempts: worst.failedAttempts, lastError: worst.lastError },
        ...{ fallback: newest.fallback, fallbackAt: newest.fallbackAt },
        keys: {
          ...{ pending: sum("pending"), active: sum("active"), draining: sum("draining"), orphan: sum("orphan") },
          ...{ dueForRemoval: sum("dueForRemoval"), longDue: sum("longDue") },
        },
      };
    },
  );
}

function highest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.flatMap((one) => one ?? []);
  return known.length > 0 ? Math.max(...known) : null;
}
