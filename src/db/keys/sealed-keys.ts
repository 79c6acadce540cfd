// Reads and replaces the sealed secrets of keys, and records events: who changed which key, when and why. The secret of a new key is stored
// by ledger.ts.

import { type MasterKeys, readMasterKeys, requireMasterKeys } from "../../keys/seal.ts";
import type { Environment } from "../../proxy.ts";
import { storableText } from "../../text.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";

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

export type KeyEvent = {
  readonly rotation: string;
  /** The key's id in the ledger, which it has before the service makes it. Undefined if the event is about no single key. */
  readonly intentId: string | undefined;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

/** Records an event that changes no key. */
export async function recordEvent(db: Database, event: KeyEvent): Promise<void> {
  await inTransaction(db, (tx) => insertEvent(tx, event, undefined));
}

/** False if an event with this change id exists: an earlier attempt was committed, although its acknowledgement was lost. */
export async function insertEvent(tx: Tx, event: KeyEvent, changeId: string | undefined): Promise<boolean> {
  const { rotation, intentId, event: name, actor, reason } = event;
  const inserted = await tx
    .insertInto("usage_export.key_event")
    .values({ change_id: changeId, rotation, intent_id: intentId, event: name, actor, reason: storableText(reason) })
    .onConflict((conflict) => conflict.column("change_id").doNothing())
    .returning("event_id")
    .execute();
  return inserted.length > 0;
}
