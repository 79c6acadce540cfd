// Writes the ledger of API keys. Each change is one transaction with its event; secrets are here only sealed.

import { sql } from "kysely";
import type { LedgerChange } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { Database } from "./database.ts";
import { insertEvent } from "./key-events.ts";
import {
  changeKey,
  changeRotation,
  insertIntent,
  NOW,
  promote,
  recordDelivery,
  removeIntent,
  type SealedText,
  storeKey,
} from "./key-rows.ts";
import { type Lease, requireLease } from "./lease.ts";
import { storableText } from "./storable-text.ts";
import { inTransaction, type Tx } from "./transaction.ts";

/** What is written of a change beside the change itself. */
export type ChangeContext = {
  readonly job: RotationJob;
  readonly lease: Lease;
  readonly actor: string;
  /** The same when the same change is tried again. */
  readonly changeId: string;
  /** The new key's secret, sealed: only with the change `stored`. */
  readonly sealed?: SealedText;
};

/** Throws `stopped` where the lease is another process's by now; nothing is written then. */
export async function writeLedger(
  db: Database,
  { job, lease, actor, changeId, sealed }: ChangeContext,
  change: LedgerChange,
  reason: string,
): Promise<void> {
  const intentId = "intentId" in change ? change.intentId : undefined;
  const event = { rotation: job.name, intentId, event: change.kind, actor, reason };
  await inTransaction(db, async (tx) => {
    await commitDurably(tx);
    await requireLease(tx, lease);
    if (await insertEvent(tx, event, changeId)) await applyChange(tx, job, change, storableText(reason), sealed);
  });
}

/**
 * A role or a database may have turned `synchronous_commit` off for speed. A server that crashes then loses commits it has
 * confirmed, and the secret of a created key is stored nowhere else. A stricter setting is kept.
 */
async function commitDurably(tx: Tx): Promise<void> {
  await sql`
    select pg_catalog.set_config('synchronous_commit', 'on', true)
    where pg_catalog.current_setting('synchronous_commit') <> 'remote_apply'
  `.execute(tx);
}

async function applyChange(
  tx: Tx,
  job: RotationJob,
  change: LedgerChange,
  note: string,
  sealed: SealedText | undefined,
): Promise<void> {
  switch (change.kind) {
    case "intent":
      return insertIntent(tx, job, change.intentId, change.comment);
    case "not-created":
      return removeIntent(tx, change.intentId);
    case "orphan":
      return changeKey(tx, change.intentId, { state: "orphan", step: null, note });
    case "stored":
      return storeKey(tx, job, change.intentId, change.created, sealed);
    case "verified":
      return changeKey(tx, change.intentId, { step: "verified", verified_at: NOW });
    case "delivered":
      return recordDelivery(tx, job.name, change.sink, change.intentId);
    case "active":
      return promote(tx, job.name, change.intentId, change.putBack);
    case "abandoned":
      return changeKey(tx, change.intentId, {
        state: "draining",
        step: null,
        draining_since: NOW,
        due_for_removal_at: NOW,
        note,
      });
    case "rollback":
      return changeRotation(tx, job.name, { rollback_to: change.intentId });
    case "due-for-removal":
      return changeKey(tx, change.intentId, { due_for_removal_at: NOW, note });
    case "in-use":
      return changeKey(tx, change.intentId, { due_for_removal_at: null, note });
    case "kept":
      return changeKey(tx, change.intentId, { note });
    case "retired":
      // What nobody needs any more is not kept, sealed or not.
      return changeKey(tx, change.intentId, {
        state: "retired",
        step: null,
        retired_at: NOW,
        sealed: null,
        master_key: null,
        note,
      });
    case "found":
      return changeKey(tx, change.intentId, { api_key_id: change.apiKeyId, note });
    case "failed":
      return changeRotation(tx, job.name, { failed_attempts: sql<number>`failed_attempts + 1`, last_error: note });
    case "recovered":
      return changeRotation(tx, job.name, { failed_attempts: 0, last_error: null });
  }
}
