// Reads the sealed secrets of keys. ledger.ts writes them.

import { type RawBuilder, sql } from "kysely";
import { type MasterKeys, readMasterKeys, requireMasterKeys } from "../../keys/seal.ts";
import type { Environment } from "../../proxy.ts";
import type { Database } from "../connection/database.ts";
import { execute } from "../connection/transaction.ts";

export type SealedKey = {
  readonly intentId: string;
  readonly rotation: string;
  readonly apiKeyId: string;
  readonly sealed: string;
  /** The id of the master key that it is sealed with. */
  readonly masterKey: string | null;
};

/** The active key, then the draining ones, newest first. Left out are keys never taken into use, and keys made for another project. */
export async function usableKeys(db: Database, rotation: string, projectId: string): Promise<readonly SealedKey[]> {
  const isUsable = sql`state in ('active', 'draining') and active_since is not null`;
  return selectSealed(
    db,
    sql`rotation = ${rotation} and project_id = ${projectId} and ${isUsable} order by state, active_since desc`,
  );
}

export async function sealedKey(db: Database, intentId: string): Promise<SealedKey | undefined> {
  return (await selectSealed(db, sql`intent_id = ${intentId}`))[0];
}

/** Keys that are sealed with another master key than this one. */
export async function sealedWithOtherMasterKey(db: Database, masterKey: string): Promise<readonly SealedKey[]> {
  return selectSealed(db, sql`master_key <> ${masterKey}`);
}

async function selectSealed(db: Database, condition: RawBuilder<unknown>): Promise<readonly SealedKey[]> {
  const select = sql<SealedKey>`
    select intent_id as "intentId", rotation, api_key_id as "apiKeyId", sealed, master_key as "masterKey"
    from usage_export.api_key where api_key_id is not null and sealed is not null and ${condition}
  `;
  return (await execute(db, select)).rows;
}

/** The master keys of the environment. Throws `config` if a key in the ledger is sealed with another one. */
export async function openMasterKeys({ env }: { readonly env: Environment }, db: Database): Promise<MasterKeys> {
  const masterKeys = readMasterKeys(env);
  const used = sql<{ readonly id: string }>`
    select distinct master_key as id from usage_export.api_key where sealed is not null and master_key is not null
  `;
  requireMasterKeys(
    masterKeys,
    (await execute(db, used)).rows.map(({ id }) => id),
  );
  return masterKeys;
}

export async function rotationsWithKey(db: Database): Promise<ReadonlySet<string>> {
  const active = sql<{ readonly rotation: string }>`select rotation from usage_export.api_key where state = 'active'`;
  return new Set((await execute(db, active)).rows.map(({ rotation }) => rotation));
}
