// Reads and replaces the sealed secrets of keys. The secret of a new key is stored by ledger.ts.

import { type MasterKeys, readMasterKeys, requireMasterKeys } from "../../keys/seal.ts";
import type { Environment } from "../../proxy.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { insertEvent } from "./key-events.ts";

export type SealedKey = {
  readonly intentId: string;
  readonly rotation: string;
  readonly apiKeyId: string;
  readonly sealed: string;
  /** The id of the master key that it is sealed with. */
  readonly masterKey: string | null;
};

/** The active key first, then the draining ones, the newest first. A key of another project does not work with this one. */
export async function usableKeys(db: Database, rotation: string, projectId: string): Promise<readonly SealedKey[]> {
  return inTransaction(db, (tx) =>
    selectSealed(tx)
      .where("rotation", "=", rotation)
      .where("project_id", "=", projectId)
      .where("state", "in", ["active", "draining"])
      .where("active_since", "is not", null)
      .orderBy("state")
      .orderBy("active_since", "desc")
      .execute(),
  );
}

export async function sealedKey(db: Database, intentId: string): Promise<SealedKey | undefined> {
  return inTransaction(db, (tx) => selectSealed(tx).where("intent_id", "=", intentId).executeTakeFirst());
}

/** Keys that are sealed with another master key than this one. */
export async function sealedWithOthers(db: Database, masterKey: string): Promise<readonly SealedKey[]> {
  return inTransaction(db, (tx) => selectSealed(tx).where("master_key", "<>", masterKey).execute());
}

function selectSealed(tx: Tx) {
  return tx
    .selectFrom("usage_export.api_key")
    .select(["intent_id as intentId", "rotation", "api_key_id as apiKeyId", "sealed", "master_key as masterKey"])
    .where("api_key_id", "is not", null)
    .where("sealed", "is not", null)
    .$narrowType<{ apiKeyId: string; sealed: string }>();
}

/** The master keys of the environment. Throws `config` if a key in the ledger is sealed with another one. */
export async function openMasterKeys({ env }: { readonly env: Environment }, db: Database): Promise<MasterKeys> {
  const masterKeys = readMasterKeys(env);
  const rows = await inTransaction(db, (tx) =>
    tx.selectFrom("usage_export.api_key").select("master_key").distinct().where("sealed", "is not", null).execute(),
  );
  const used = rows.flatMap(({ master_key }) => master_key ?? []);
  requireMasterKeys(masterKeys, used);
  return masterKeys;
}

/** The names of the rotations that have an active key. */
export async function rotationsWithKey(db: Database): Promise<ReadonlySet<string>> {
  const rows = await inTransaction(db, (tx) =>
    tx.selectFrom("usage_export.api_key").select("rotation").where("state", "=", "active").execute(),
  );
  return new Set(rows.map(({ rotation }) => rotation));
}

/** Replaces the key's sealed text. Does nothing if another process has replaced it since `key` was read. */
export async function replaceSealed(
  db: Database,
  key: SealedKey,
  { sealed, masterKey, actor }: { readonly sealed: string; readonly masterKey: string; readonly actor: string },
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
