import { type App, raiseLaggingSequences, withDatabase } from "../app.ts";
import { readSnapshot } from "../db/connection/transaction.ts";
import { replaceSealed, sealedWithOthers } from "../db/keys/keystore.ts";
import { type KeyStatus, keyStatuses, type RotationStatus, rotationRows, rotationStatus } from "../db/keys/status.ts";
import { rotationWarnings } from "../health/alerts.ts";
import { openMasterKeys } from "../jobs/api-keys.ts";
import { needsAttention } from "../keys/plan.ts";
import { openSealedKey, sealKey } from "../keys/seal.ts";

type KeysOptions = { readonly json?: boolean };

/** Exit status 1 while a rotation needs attention. */
export async function runKeys(app: App, { json }: KeysOptions): Promise<number> {
  const { keys, rotations } = await withDatabase(app, (db) =>
    readSnapshot(db, async (tx) => ({
      keys: await keyStatuses(tx),
      rotations: (await rotationRows(tx)).map(rotationStatus),
    })),
  );
  app.write(json ? `${JSON.stringify({ keys, rotations })}\n` : renderKeys(keys, rotations));
  return rotations.some(({ failedAttempts }) => needsAttention(failedAttempts)) ? 1 : 0;
}

function renderKeys(keys: readonly KeyStatus[], rotations: readonly RotationStatus[]): string {
  const lines = rotations.flatMap((rotation) => [
    rotation.rotation,
    ...keys.filter((key) => key.rotation === rotation.rotation).map((key) => `  ${renderKey(key)}`),
    ...rotationWarnings(rotation).map((text) => `  ${text}`),
  ]);
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
    await raiseLaggingSequences(app, db);
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
