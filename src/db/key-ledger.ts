// The ledger of API keys. Each change is one transaction with its event; secrets are here only sealed.

import { sql } from "kysely";
import type { Ledger, LedgerKey } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { LedgerChange, NewKey } from "../keys/rotate.ts";
import type { Database } from "./database.ts";
import { type Lease, requireLease } from "./lease.ts";
import { inTransaction, type Tx } from "./transaction.ts";

const TEXT_LENGTH_MAX = 1_000;

/** All keys of a rotation but the retired ones, the oldest first. */
export async function readLedger(db: Database, rotation: string): Promise<Ledger> {
  const state = await db
    .selectFrom("usage_export.rotation")
    .select(["failed_attempts", "last_error", "rollback_to"])
    .where("name", "=", rotation)
    .executeTakeFirst();
  const rows = await db
    .selectFrom("usage_export.api_key")
    .selectAll()
    .where("rotation", "=", rotation)
    .where("state", "<>", "retired")
    .orderBy("requested_at")
    .orderBy("intent_id")
    .execute();
  const deliveries = await db
    .selectFrom("usage_export.key_delivery")
    .select(["intent_id", "sink"])
    .where("rotation", "=", rotation)
    .execute();
  const keys = rows.map(
    (row): LedgerKey => ({
      intentId: row.intent_id,
      apiKeyId: row.api_key_id ?? undefined,
      state: row.state,
      step: row.step ?? undefined,
      comment: row.comment,
      requestedAt: row.requested_at,
      activeSince: row.active_since ?? undefined,
      drainingSince: row.draining_since ?? undefined,
      dueForRemovalAt: row.due_for_removal_at ?? undefined,
      scopesAsked: row.scopes_asked,
      scopesGranted: row.scopes_granted ?? [],
      deliveredTo: deliveries.filter(({ intent_id }) => intent_id === row.intent_id).map(({ sink }) => sink),
    }),
  );
  return {
    failedAttempts: state?.failed_attempts ?? 0,
    lastError: state?.last_error ?? undefined,
    rollbackTo: state?.rollback_to ?? undefined,
    keys,
  };
}

/** What is written of a change beside the change itself. */
export type ChangeContext = {
  readonly job: RotationJob;
  readonly lease: Lease;
  readonly actor: string;
  /** The new key's secret, sealed: only with the change `stored`. */
  readonly sealed?: { readonly text: string; readonly masterKey: string };
};

/** Throws `stopped` where the lease is another process's by now; nothing is written then. */
export async function writeLedger(
  db: Database,
  { job, lease, actor, sealed }: ChangeContext,
  change: LedgerChange,
  reason: string,
): Promise<void> {
  await inTransaction(db, async (tx) => {
    await requireLease(tx, lease);
    await applyChange(tx, job, change, reason, sealed);
    await recordEvent(tx, { rotation: job.name, intentId: intentOf(change), event: change.kind, actor, reason });
  });
}

export type KeyEvent = {
  readonly rotation: string;
  readonly intentId: string | undefined;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

export async function recordEvent(db: Database | Tx, event: KeyEvent): Promise<void> {
  await db
    .insertInto("usage_export.key_event")
    .values({
      rotation: event.rotation,
      intent_id: event.intentId ?? null,
      event: event.event,
      actor: event.actor,
      reason: event.reason.slice(0, TEXT_LENGTH_MAX),
    })
    .execute();
}

function intentOf(change: LedgerChange): string | undefined {
  return change.kind === "failed" ? undefined : change.intentId;
}

const NOW = sql<Date>`clock_timestamp()`;

async function applyChange(
  tx: Tx,
  job: RotationJob,
  change: LedgerChange,
  reason: string,
  sealed: ChangeContext["sealed"],
): Promise<void> {
  const note = reason.slice(0, TEXT_LENGTH_MAX);
  const update = tx.updateTable("usage_export.api_key");
  switch (change.kind) {
    case "intent":
      await insertIntent(tx, job, change.intentId, change.comment);
      return;
    case "not-created":
      await tx
        .deleteFrom("usage_export.api_key")
        .where("intent_id", "=", change.intentId)
        .where("step", "=", "intent")
        .execute();
      return;
    case "orphan":
      await update.set({ state: "orphan", step: null, note }).where("intent_id", "=", change.intentId).execute();
      return;
    case "stored":
      await storeKey(tx, job, change.intentId, change.created, sealed);
      return;
    case "verified":
      await update.set({ step: "verified", verified_at: NOW }).where("intent_id", "=", change.intentId).execute();
      return;
    case "delivered":
      await recordDelivery(tx, job.name, change.sink, change.intentId);
      return;
    case "active":
      await promote(tx, job.name, change.intentId);
      return;
    case "abandoned":
      await update
        .set({ state: "draining", step: null, draining_since: NOW, due_for_removal_at: NOW, note })
        .where("intent_id", "=", change.intentId)
        .execute();
      return;
    case "due-for-removal":
      await update.set({ due_for_removal_at: NOW, note }).where("intent_id", "=", change.intentId).execute();
      return;
    case "retired":
      // What nobody needs any more is not kept, sealed or not.
      await update
        .set({ state: "retired", retired_at: NOW, sealed: null, master_key: null, note })
        .where("intent_id", "=", change.intentId)
        .execute();
      return;
    case "found":
      await update.set({ api_key_id: change.apiKeyId, note }).where("intent_id", "=", change.intentId).execute();
      return;
    case "failed":
      await sql`
        update usage_export.rotation set failed_attempts = failed_attempts + 1, last_error = ${note} where name = ${job.name}
      `.execute(tx);
  }
}

async function insertIntent(tx: Tx, job: RotationJob, intentId: string, comment: string): Promise<void> {
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

async function storeKey(
  tx: Tx,
  job: RotationJob,
  intentId: string,
  created: NewKey,
  sealed: ChangeContext["sealed"],
): Promise<void> {
  if (!sealed) throw new Error("a new key is stored sealed");
  const createdAt = created.created === undefined ? Number.NaN : Date.parse(created.created);
  await tx
    .updateTable("usage_export.api_key")
    .set({
      step: "stored",
      api_key_id: created.apiKeyId,
      scopes_granted: created.scopes,
      sealed: sealed.text,
      master_key: sealed.masterKey,
      created_at: Number.isNaN(createdAt) ? null : new Date(createdAt),
      expires_at:
        job.expiresInDays === undefined ? null : sql<Date>`requested_at + make_interval(days => ${job.expiresInDays})`,
    })
    .where("intent_id", "=", intentId)
    .where("step", "=", "intent")
    .execute();
}

async function recordDelivery(tx: Tx, rotation: string, sink: string, intentId: string): Promise<void> {
  await sql`
    insert into usage_export.key_delivery (rotation, sink, intent_id) values (${rotation}, ${sink}, ${intentId})
    on conflict (rotation, sink) do update set intent_id = excluded.intent_id, delivered_at = clock_timestamp()
  `.execute(tx);
}

async function promote(tx: Tx, rotation: string, intentId: string): Promise<void> {
  await tx
    .updateTable("usage_export.api_key")
    .set({ state: "draining", draining_since: NOW })
    .where("rotation", "=", rotation)
    .where("state", "=", "active")
    .where("intent_id", "<>", intentId)
    .execute();
  await tx
    .updateTable("usage_export.api_key")
    .set({ state: "active", step: null, active_since: NOW, draining_since: null, due_for_removal_at: null, note: null })
    .where("intent_id", "=", intentId)
    .execute();
  await tx
    .updateTable("usage_export.rotation")
    .set({ failed_attempts: 0, last_error: null, rollback_to: null })
    .where("name", "=", rotation)
    .execute();
}

/** Notes that the key before the one in use is wanted back; undefined where there is none. Returns its id. */
export async function requestRollback(
  db: Database,
  rotation: string,
  lease: Lease,
  actor: string,
): Promise<string | undefined> {
  return inTransaction(db, async (tx) => {
    await requireLease(tx, lease);
    const previous = await tx
      .selectFrom("usage_export.api_key")
      .select(["intent_id", "api_key_id"])
      .where("rotation", "=", rotation)
      .where("state", "=", "draining")
      .where("active_since", "is not", null)
      .orderBy("active_since", "desc")
      .executeTakeFirst();
    if (!previous) return undefined;
    await tx
      .updateTable("usage_export.rotation")
      .set({ rollback_to: previous.intent_id })
      .where("name", "=", rotation)
      .execute();
    const reason = "a person asked for the previous key";
    await recordEvent(tx, { rotation, intentId: previous.intent_id, event: "rollback", actor, reason });
    return previous.api_key_id ?? previous.intent_id;
  });
}
