// The keys of rotations as text. Pure.

import type { KeyStatus, RotationStatus } from "../db/keys/status.ts";
import { needsAttention } from "../keys/plan.ts";
import { counted } from "./format.ts";

type Member = { readonly group: string; readonly project: string };

/** The rotations of many projects, by their names in the ledger, NAME/ID: the configuration is not needed for that. */
export function groupFinder(keys: readonly KeyStatus[]): (rotation: string) => Member | undefined {
  const members = new Map(
    keys.flatMap(({ rotation, project, projectId }) => {
      const group = rotation.endsWith(`/${projectId}`) ? rotation.slice(0, -projectId.length - 1) : "";
      return group === "" ? [] : [[rotation, { group, project }] as const];
    }),
  );
  return (rotation) => members.get(rotation);
}

export function keysText(
  keys: readonly KeyStatus[],
  rotations: readonly RotationStatus[],
  groupOf: (rotation: string) => Member | undefined,
): string {
  const keysOf = Map.groupBy(keys, ({ rotation }) => rotation);
  const groups = Map.groupBy(rotations, ({ rotation }) => groupOf(rotation)?.group ?? rotation);
  const lines = [...groups].flatMap(([name, members]) => {
    const isOfMany = members.some(({ rotation }) => groupOf(rotation) !== undefined);
    const title = isOfMany ? `${name}, ${counted(members.length, "project")}` : name;
    return [
      title,
      ...members.flatMap((member) => {
        const project = groupOf(member.rotation)?.project;
        const start = project === undefined ? "  " : `  ${project}: `;
        const texts = [...(keysOf.get(member.rotation) ?? []).map(keyText), ...rotationWarnings(member)];
        return texts.map((text) => `${start}${text}`);
      }),
    ];
  });
  return lines.length === 0 ? "no key was made yet\n" : `${lines.join("\n")}\n`;
}

function keyText(key: KeyStatus): string {
  const { apiKeyId, intentId, state, ageDays, lastSeenInUse, dueForRemovalAt, comment, note } = key;
  return [
    `${state.padEnd(8)} ${apiKeyId ?? `(id not known, comment holds ${intentId})`}`,
    `${ageDays} days old`,
    `last seen in use ${lastSeenInUse ?? "unknown"}`,
    ...(dueForRemovalAt ? [`due for removal since ${dueForRemovalAt.toISOString().slice(0, 10)}`] : []),
    JSON.stringify(comment),
    ...(note === null ? [] : [note]),
  ].join(", ");
}

type Failures = Pick<RotationStatus, "failedAttempts" | "lastError" | "fallback" | "fallbackAt">;

/** What a person should know of a rotation, also of one that is not configured any more. */
export function rotationWarnings(row: Failures): readonly string[] {
  return [
    ...(row.failedAttempts > 0 ? [attemptsText(row)] : []),
    ...(row.fallback === null ? [] : [fallbackText(row)]),
  ];
}

export function attemptsText({ failedAttempts, lastError }: Failures): string {
  const attention = needsAttention(failedAttempts) ? "needs attention: nothing is created until rotate --now; " : "";
  return `${attention}${counted(failedAttempts, "failed attempt")}, the last: ${lastError}`;
}

export function fallbackText({ fallback, fallbackAt }: Failures): string {
  return `the key in use was refused (${fallbackAt?.toISOString()}), and the one before it was used in its place, see "keys": ${fallback}`;
}
