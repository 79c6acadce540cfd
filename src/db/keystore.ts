// Sealed keys, for those who use them.

import type { Database } from "./database.ts";

export type SealedKey = {
  readonly intentId: string;
  readonly apiKeyId: string;
  readonly sealed: string;
  readonly state: "active" | "draining" | "pending";
};

/** The key in use first, then the ones before it, the newest first. */
export async function keysInUse(db: Database, rotation: string): Promise<readonly SealedKey[]> {
  const rows = await db
    .selectFrom("usage_export.api_key")
    .select(["intent_id", "api_key_id", "sealed", "state"])
    .where("rotation", "=", rotation)
    .where("state", "in", ["active", "draining"])
    .where("active_since", "is not", null)
    .orderBy("state")
    .orderBy("active_since", "desc")
    .execute();
  return rows.flatMap(sealedKeyOf);
}

export async function sealedKey(db: Database, intentId: string): Promise<SealedKey | undefined> {
  const row = await db
    .selectFrom("usage_export.api_key")
    .select(["intent_id", "api_key_id", "sealed", "state"])
    .where("intent_id", "=", intentId)
    .executeTakeFirst();
  return row && sealedKeyOf(row)[0];
}

type Row = {
  readonly intent_id: string;
  readonly api_key_id: string | null;
  readonly sealed: string | null;
  readonly state: string;
};

function sealedKeyOf({ intent_id, api_key_id, sealed, state }: Row): SealedKey[] {
  if (api_key_id === null || sealed === null) return [];
  if (state !== "active" && state !== "draining" && state !== "pending") return [];
  return [{ intentId: intent_id, apiKeyId: api_key_id, sealed, state }];
}

/** The master keys that anything in the ledger is sealed with. */
export async function masterKeysUsed(db: Database): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("usage_export.api_key")
    .select("master_key")
    .distinct()
    .where("sealed", "is not", null)
    .execute();
  return rows.flatMap(({ master_key }) => (master_key === null ? [] : [master_key]));
}

/** The names of the rotations that have a key in use. */
export async function rotationsWithKey(db: Database): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom("usage_export.api_key").select("rotation").where("state", "=", "active").execute();
  return new Set(rows.map(({ rotation }) => rotation));
}

export type ToRewrap = SealedKey & { readonly masterKey: string };

/** What is sealed with another master key than this one. */
export async function sealedWithOthers(db: Database, masterKey: string): Promise<readonly ToRewrap[]> {
  const rows = await db
    .selectFrom("usage_export.api_key")
    .select(["intent_id", "api_key_id", "sealed", "state", "master_key"])
    .where("sealed", "is not", null)
    .where("master_key", "<>", masterKey)
    .execute();
  return rows.flatMap((row) => sealedKeyOf(row).map((key) => ({ ...key, masterKey: row.master_key ?? "" })));
}

/** Replaces the sealed text, if it is still the one that was read. */
export async function replaceSealed(db: Database, key: ToRewrap, sealed: string, masterKey: string): Promise<void> {
  await db
    .updateTable("usage_export.api_key")
    .set({ sealed, master_key: masterKey })
    .where("intent_id", "=", key.intentId)
    .where("sealed", "=", key.sealed)
    .execute();
}
