// Reads and replaces the sealed secrets of the ledger's keys.

import type { Database } from "../connection/database.ts";
import { inTransaction } from "../connection/transaction.ts";
import { insertEvent } from "./ledger.ts";

export type SealedKey = {
  readonly intentId: string;
  readonly apiKeyId: string;
  readonly sealed: string;
};

/** The key in use first, then the ones before it, the newest first. Those of another project would not work with this one. */
export async function usableKeys(db: Database, rotation: string, projectId: string): Promise<readonly SealedKey[]> {
  const rows = await inTransaction(db, (tx) =>
    tx
      .selectFrom("usage_export.api_key")
      .select(["intent_id", "api_key_id", "sealed"])
      .where("rotation", "=", rotation)
      .where("project_id", "=", projectId)
      .where("state", "in", ["active", "draining"])
      .where("active_since", "is not", null)
      .orderBy("state")
      .orderBy("active_since", "desc")
      .execute(),
  );
  return rows.flatMap(sealedKeyOf);
}

export async function sealedKey(db: Database, intentId: string): Promise<SealedKey | undefined> {
  const row = await inTransaction(db, (tx) =>
    tx
      .selectFrom("usage_export.api_key")
      .select(["intent_id", "api_key_id", "sealed"])
      .where("intent_id", "=", intentId)
      .executeTakeFirst(),
  );
  return row && sealedKeyOf(row)[0];
}

type SealedKeyRow = {
  readonly intent_id: string;
  readonly api_key_id: string | null;
  readonly sealed: string | null;
};

function sealedKeyOf({ intent_id, api_key_id, sealed }: SealedKeyRow): SealedKey[] {
  return api_key_id === null || sealed === null ? [] : [{ intentId: intent_id, apiKeyId: api_key_id, sealed }];
}

/** The master keys that anything in the ledger is sealed with. */
export async function masterKeysUsed(db: Database): Promise<readonly string[]> {
  const rows = await inTransaction(db, (tx) =>
    tx.selectFrom("usage_export.api_key").select("master_key").distinct().where("sealed", "is not", null).execute(),
  );
  return rows.flatMap(({ master_key }) => (master_key === null ? [] : [master_key]));
}

/** The names of the rotations that have a key in use. */
export async function rotationsWithKey(db: Database): Promise<ReadonlySet<string>> {
  const rows = await inTransaction(db, (tx) =>
    tx.selectFrom("usage_export.api_key").select("rotation").where("state", "=", "active").execute(),
  );
  return new Set(rows.map(({ rotation }) => rotation));
}

export type KeyToRewrap = SealedKey & { readonly rotation: string; readonly masterKey: string };

/** What is sealed with another master key than this one. */
export async function sealedWithOthers(db: Database, masterKey: string): Promise<readonly KeyToRewrap[]> {
  const rows = await inTransaction(db, (tx) =>
    tx
      .selectFrom("usage_export.api_key")
      .select(["intent_id", "api_key_id", "sealed", "rotation", "master_key"])
      .where("sealed", "is not", null)
      .where("master_key", "<>", masterKey)
      .execute(),
  );
  return rows.flatMap((row) =>
    sealedKeyOf(row).map((key) => ({ ...key, rotation: row.rotation, masterKey: row.master_key ?? "" })),
  );
}

export type Rewrapped = { readonly sealed: string; readonly masterKey: string; readonly actor: string };

/** Replaces the sealed text, if it is still the one that was read. */
export async function replaceSealed(
  db: Database,
  key: KeyToRewrap,
  { sealed, masterKey, actor }: Rewrapped,
): Promise<void> {
  await inTransaction(db, async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable("usage_export.api_key")
      .set({ sealed, master_key: masterKey })
      .where("intent_id", "=", key.intentId)
      .where("sealed", "=", key.sealed)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return;
    const { rotation, intentId } = key;
    const reason = `sealed with the master key ${masterKey}, before with ${key.masterKey}`;
    await insertEvent(tx, { rotation, intentId, event: "rewrapped", actor, reason }, undefined);
  });
}
