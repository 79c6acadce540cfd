// Reads the sealed keys, and opens the master keys that they need. ledger.ts writes them.

import { sql } from "kysely";
import { type MasterKeys, readMasterKeys, requireMasterKeys } from "../../keys/seal.ts";
import type { Environment } from "../../proxy.ts";
import type { Database } from "../connection/database.ts";
import { execute, inTransaction, type Tx } from "../connection/transaction.ts";

export type SealedKey = {
  readonly intentId: string;
  readonly rotation: string;
  readonly apiKeyId: string;
  readonly sealed: string;
  /** The id of the master key that it is sealed with. */
  readonly masterKey: string | null;
};

/** The active key, then the draining keys, newest first. Leaves out keys that were never active, and keys of another project. */
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

export async function readSealedKey(db: Database, intentId: string): Promise<SealedKey | undefined> {
  return inTransaction(db, (tx) => selectSealed(tx).where("intent_id", "=", intentId).executeTakeFirst());
}

export async function sealedWithOtherMasterKey(db: Database, masterKeyId: string): Promise<readonly SealedKey[]> {
  return inTransaction(db, (tx) => selectSealed(tx).where("master_key", "<>", masterKeyId).execute());
}

function selectSealed(tx: Tx) {
  return tx
    .selectFrom("usage_export.api_key")
    .select(["intent_id as intentId", "rotation", "api_key_id as apiKeyId", "sealed", "master_key as masterKey"])
    .where("api_key_id", "is not", null)
    .where("sealed", "is not", null)
    .$narrowType<{ apiKeyId: string; sealed: string }>();
}

/** Reads the master keys from the environment. Throws `config` if a key in the ledger is sealed with another one. */
export async function openMasterKeys({ env }: { readonly env: Environment }, db: Database): Promise<MasterKeys> {
  const masterKeys = readMasterKeys(env);
  const used = sql<{ readonly id: string }>`
    select distinct master_key as id from usage_export.api_key where sealed is not null and master_key is not null
  `;
  const ids = (await execute(db, used)).rows.map(({ id }) => id);
  requireMasterKeys(masterKeys, ids);
  return masterKeys;
}

export async function rotationsWithActiveKey(db: Database): Promise<ReadonlySet<string>> {
  const active = sql<{ readonly rotation: string }>`select rotation from usage_export.api_key where state = 'active'`;
  return new Set((await execute(db, active)).rows.map(({ rotation }) => rotation));
}
