// The commands `keys` and `keys rewrap`.

import type { App } from "../app.ts";
import { readAtOneMoment } from "../db/connection/transaction.ts";
import { replaceSealed } from "../db/keys/ledger.ts";
import { openMasterKeys, sealedWithOtherMasterKey } from "../db/keys/sealed-keys.ts";
import { raiseLaggingSequences } from "../db/usage/fetch-numbers.ts";
import { fallbackText, type KeyStatus, keyStatuses, type RotationRow, rotationRows } from "../facts/keys.ts";
import { attemptsText, needsAttention } from "../keys/rotation-plan.ts";
import { openSealedKey, sealKey } from "../keys/seal.ts";
import { withDatabase } from "../open-database.ts";
import { counted } from "../show/format.ts";
import { present } from "../text.ts";

export async function runKeys(app: App, { json }: { readonly json?: boolean }): Promise<number> {
  const { keys, rotations } = await withDatabase(app, (db) =>
    readAtOneMoment(db, async (tx) => ({ keys: await keyStatuses(tx), rotations: await rotationRows(tx) })),
  );
  app.write(json ? `${JSON.stringify({ keys, rotations })}\n` : keysText(keys, rotations));
  return rotations.some(({ failedAttempts }) => needsAttention(failedAttempts)) ? 1 : 0;
}

/** A rotation of many projects has one row per project, and each row has a ledger name of its own. Any other has one row, `project` null. */
function keysText(keys: readonly KeyStatus[], rotations: readonly RotationRow[]): string {
  const keysByLedger = Map.groupBy(keys, ({ ledgerName }) => ledgerName);
  const lines = [...Map.groupBy(rotations, ({ rotation }) => rotation)].flatMap(([name, rows]) => [
    rows.some(({ project }) => project !== null) ? `${name}, ${counted(rows.length, "project")}` : name,
    ...rows.flatMap((row) => {
      const indent = row.project === null ? "  " : `  ${row.project}: `;
      const texts = (keysByLedger.get(row.ledgerName) ?? []).map(keyText);
      if (row.failedAttempts > 0) texts.push(attemptsText(row));
      if (row.fallback !== null) texts.push(fallbackText(row));
      return texts.map((text) => `${indent}${text}`);
    }),
  ]);
  return lines.length === 0 ? "no key was made yet\n" : `${lines.join("\n")}\n`;
}

function keyText(key: KeyStatus): string {
  const { apiKeyId, intentId, state, ageDays, lastSeenInUse, dueForRemovalAt, comment, note } = key;
  return present([
    `${state.padEnd(8)} ${apiKeyId ?? `(id unknown; look for the key whose comment contains ${intentId})`}`,
    `${counted(ageDays, "day")} old, last seen in use ${lastSeenInUse ?? "unknown"}`,
    dueForRemovalAt !== null && `due for removal since ${dueForRemovalAt.toISOString().slice(0, 10)}`,
    JSON.stringify(comment),
    note ?? undefined,
  ]).join(", ");
}

/** Seals every key with the current master key. May be interrupted, as a key opens with either the previous master key or the current one. */
export async function runRewrap(app: App): Promise<number> {
  const rewrapped = await withDatabase(app, async (db) => {
    // Rewrapping stores key events. After a restore, the sequence of their ids may be behind the stored ones.
    await raiseLaggingSequences(db, app.log);
    const masterKeys = await openMasterKeys(app, db);
    const toRewrap = await sealedWithOtherMasterKey(db, masterKeys.current.id);
    for (const key of toRewrap) {
      const secret = await openSealedKey(key, masterKeys, app.scrubber);
      const sealed = await sealKey(secret, key.apiKeyId, masterKeys);
      await replaceSealed(db, key, { sealed, masterKey: masterKeys.current.id, actor: app.actor });
    }
    return toRewrap.length;
  });
  app.write(`${counted(rewrapped, "key")} sealed with the current master key\n`);
  return 0;
}
