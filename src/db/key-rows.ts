// The statements that change rows of the key ledger. Each throws where it changes nothing: a plan that is not about this
// ledger must not look as if it had been carried out.

import { sql, type UpdateObject } from "kysely";
import { AppError } from "../errors.ts";
import type { NewKey } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import { storableText } from "./storable-text.ts";
import type { Tables } from "./tables.ts";
import type { Tx } from "./transaction.ts";

export type SealedText = { readonly text: string; readonly masterKey: string };

export const NOW = sql<Date>`clock_timestamp()`;

export async function insertIntent(tx: Tx, job: RotationJob, intentId: string, comment: string): Promise<void> {
  await tx
    .insertInto("usage_export.api_key")
    .values({
      intent_id: intentId,
      rotation: job.name,
      project_id: job.project.id,
      project: job.project.name,
      state: "pending",
      step: "intent",
      comment,
      scopes_asked: job.scopes,
      requested_at: NOW,
    })
    .execute();
}

export async function removeIntent(tx: Tx, intentId: string): Promise<void> {
  const removed = await tx
    .deleteFrom("usage_export.api_key")
    .where("intent_id", "=", intentId)
    .where("step", "=", "intent")
    .executeTakeFirst();
  requireOne(removed.numDeletedRows, intentId);
}

export async function storeKey(
  tx: Tx,
  job: RotationJob,
  intentId: string,
  created: NewKey,
  sealed: SealedText | undefined,
): Promise<void> {
  if (!sealed) throw new Error("a new key is stored sealed");
  const createdAt = created.created === undefined ? Number.NaN : Date.parse(created.created);
  const stored = await tx
    .updateTable("usage_export.api_key")
    .set({
      step: "stored",
      api_key_id: created.apiKeyId,
      scopes_granted: created.scopes.map(storableText),
      sealed: sealed.text,
      master_key: sealed.masterKey,
      created_at: Number.isNaN(createdAt) ? null : new Date(createdAt),
      // From before the create, so that it is never later than the service's own.
      expires_at:
        job.expiresInDays === undefined ? null : sql<Date>`requested_at + make_interval(days => ${job.expiresInDays})`,
    })
    .where("intent_id", "=", intentId)
    .where("step", "=", "intent")
    .executeTakeFirst();
  requireOne(stored.numUpdatedRows, intentId);
}

export async function recordDelivery(tx: Tx, rotation: string, sink: string, intentId: string): Promise<void> {
  await sql`
    insert into usage_export.key_delivery (rotation, sink, intent_id) values (${rotation}, ${sink}, ${intentId})
    on conflict (rotation, sink) do update set intent_id = excluded.intent_id, delivered_at = clock_timestamp()
  `.execute(tx);
}

/** In one transaction: at no moment are there two keys in use, or none. */
export async function promote(tx: Tx, rotation: string, intentId: string, putBack: boolean): Promise<void> {
  await tx
    .updateTable("usage_export.api_key")
    .set({ state: "draining", draining_since: NOW })
    .where("rotation", "=", rotation)
    .where("state", "=", "active")
    .execute();
  await changeKey(tx, intentId, {
    state: "active",
    step: null,
    active_since: NOW,
    put_back_at: putBack ? NOW : null,
    draining_since: null,
    due_for_removal_at: null,
    note: null,
  });
  await changeRotation(tx, rotation, { failed_attempts: 0, last_error: null, rollback_to: null });
}

export async function changeKey(
  tx: Tx,
  intentId: string,
  change: UpdateObject<Tables, "usage_export.api_key">,
): Promise<void> {
  const changed = await tx
    .updateTable("usage_export.api_key")
    .set(change)
    .where("intent_id", "=", intentId)
    .executeTakeFirst();
  requireOne(changed.numUpdatedRows, intentId);
}

export async function changeRotation(
  tx: Tx,
  name: string,
  change: UpdateObject<Tables, "usage_export.rotation">,
): Promise<void> {
  await tx.updateTable("usage_export.rotation").set(change).where("name", "=", name).execute();
}

function requireOne(rows: bigint, intentId: string): void {
  if (rows !== 1n)
    throw new AppError("database", `the ledger has no key ${intentId} in the state that this change is for`);
}
