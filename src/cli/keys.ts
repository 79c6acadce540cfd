import type { App } from "../app.ts";
import { withDatabase } from "../database.ts";
import { readSnapshot } from "../db/connection/transaction.ts";
import { replaceSealed, sealedWithOthers } from "../db/keys/keystore.ts";
import { type KeyStatus, keyStatuses, type RotationStatus, rotationRows, rotationStatus } from "../db/keys/status.ts";
import { raiseLaggingSequences } from "../db/sequences.ts";
import { rotationWarnings } from "../health/rotation-conditions.ts";
import { openMasterKeys } from "../jobs/api-keys.ts";
import { needsAttention } from "../keys/plan.ts";
import { openSealedKey, sealKey } from "../keys/seal.ts";
import { counted } from "../show/format.ts";
import { requireKnown } from "./selection.ts";

type KeysOptions = {
  readonly json?: boolean;
  readonly job?: readonly string[];
  readonly project?: readonly string[];
};

/** Exit status 1 while a rotation needs attention. */
export async function runKeys(app: App, { json, job, project }: KeysOptions): Promise<number> {
  const all = await withDatabase(app, (db) =>
    readSnapshot(db, async (tx) => ({
      keys: await keyStatuses(tx),
      rotations: (await rotationRows(tx)).map(rotationStatus),
    })),
  );
  const groupOf = groupFinder(all.keys);
  const nameOf = (rotation: string) => groupOf(rotation)?.group ?? rotation;
  requireKnown("--job", job, [...new Set(all.rotations.map(({ rotation }) => nameOf(rotation)))], noKeys);
  const projects = new Set(all.keys.flatMap((key) => [key.project, key.projectId]));
  requireKnown("--project", project, [...projects], noKeys);
  const keys = all.keys.filter(
    (key) =>
      (job?.includes(nameOf(key.rotation)) ?? true) &&
      (project === undefined || project.includes(key.project) || project.includes(key.projectId)),
  );
  const shown = new Set(keys.map(({ rotation }) => rotation));
  const rotations = all.rotations.filter(
    ({ rotation }) => (job?.includes(nameOf(rotation)) ?? true) && (project === undefined || shown.has(rotation)),
  );
  app.write(json ? `${JSON.stringify({ keys, rotations })}\n` : renderKeys(keys, rotations, groupOf));
  return rotations.some(({ failedAttempts }) => needsAttention(failedAttempts)) ? 1 : 0;
}

const noKeys = (name: string) => `the ledger has no keys of ${name}`;

type Member = { readonly group: string; readonly project: string };

/** The rotations of many projects, by their names in the ledger, NAME/ID: the configuration is not needed for that. */
function groupFinder(keys: readonly KeyStatus[]): (rotation: string) => Member | undefined {
  const members = new Map(
    keys.flatMap(({ rotation, project, projectId }) => {
      const group = rotation.endsWith(`/${projectId}`) ? rotation.slice(0, -projectId.length - 1) : "";
      return group === "" ? [] : [[rotation, { group, project }] as const];
    }),
  );
  return (rotation) => members.get(rotation);
}

function renderKeys(
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
        const texts = [...(keysOf.get(member.rotation) ?? []).map(renderKey), ...rotationWarnings(member)];
        return texts.map((text) => `${start}${text}`);
      }),
    ];
  });
  return lines.length === 0 ? "no key was made yet\n" : `${lines.join("\n")}\n`;
}

function renderKey(key: KeyStatus): string {
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

/** Seals every key with the current master key. Safe to repeat and to interrupt: each key opens with one or the other. */
export async function runRewrap(app: App, { json }: KeysOptions): Promise<number> {
  const rewrapped = await withDatabase(app, async (db) => {
    await raiseLaggingSequences(app.log, db);
    const masterKeys = await openMasterKeys(app, db);
    const others = await sealedWithOthers(db, masterKeys.current.id);
    for (const key of others) {
      const secret = await openSealedKey(key, masterKeys, app.scrubber);
      const sealed = await sealKey(secret, key.apiKeyId, masterKeys);
      await replaceSealed(db, key, { sealed, masterKey: masterKeys.current.id, actor: app.actor });
    }
    return others.length;
  });
  app.write(json ? `${JSON.stringify({ rewrapped })}\n` : `${rewrapped} keys sealed with the current master key\n`);
  return 0;
}
