// Reads and writes the ledger of API keys. Each change is one transaction with its event; a secret is stored only sealed.

import { sql, type UpdateObject } from "kysely";
import { AppError } from "../../errors.ts";
import type { Ledger, LedgerChange, LedgerKey, NewKey } from "../../keys/ledger.ts";
import type { RotationJob } from "../../keys/policy.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { storableText, type Tables } from "../schema.ts";
import { type Lease, requireLease } from "./lease.ts";

/**
 * All keys of a rotation but the retired ones, the oldest first, and the ledger's clock. Throws `config` where they belong
 * to another project than the rotation: they could neither be used nor removed with its key.
 */
export async function readLedger(
  db: Database,
  { name, project }: Pick<RotationJob, "name" | "project">,
): Promise<{ readonly ledger: Ledger; readonly now: Date }> {
  const { state, keys } = await inTransaction(db, async (tx) => ({
    state: await readLedgerState(tx, name),
    keys: await selectLedgerKeys(tx, name),
  }));
  const foreign = keys.find(({ project_id }) => project_id !== project.id);
  if (foreign) {
    throw new AppError(
      "config",
      `the rotation ${name} has keys of another project (${foreign.project}, ${foreign.project_id}) in the ledger; give the rotation of ${project.name} a name of its own`,
    );
  }
  const ledger = {
    failedAttempts: state.failedAttempts ?? 0,
    lastError: state.lastError ?? undefined,
    rollbackTo: state.rollbackTo ?? undefined,
    keys: keys.map(toLedgerKey),
  };
  return { ledger, now: state.now };
}

type LedgerState = {
  readonly now: Date;
  readonly failedAttempts: number | null;
  readonly lastError: string | null;
  readonly rollbackTo: string | null;
};

async function readLedgerState(tx: Tx, rotation: string): Promise<LedgerState> {
  const { rows } = await sql<LedgerState>`
    select clock_timestamp() as now, r.failed_attempts as "failedAttempts", r.last_error as "lastError",
      r.rollback_to as "rollbackTo"
    from (values (1)) as one left join usage_export.rotation r on r.name = ${rotation}
  `.execute(tx);
  const [state] = rows;
  if (!state) throw new AppError("database", "the database does not tell the time");
  return state;
}

async function selectLedgerKeys(tx: Tx, rotation: string) {
  return tx
    .selectFrom("usage_export.api_key as k")
    .selectAll("k")
    .select(
      sql<string[]>`array(select sink from usage_export.key_delivery d where d.intent_id = k.intent_id)`.as(
        "delivered_to",
      ),
    )
    .where("k.rotation", "=", rotation)
    .where("k.state", "<>", "retired")
    .orderBy("k.requested_at")
    .orderBy("k.intent_id")
    .execute();
}

function toLedgerKey(row: Awaited<ReturnType<typeof selectLedgerKeys>>[number]): LedgerKey {
  return {
    intentId: row.intent_id,
    apiKeyId: row.api_key_id ?? undefined,
    state: row.state,
    step: row.step ?? undefined,
    comment: row.comment,
    requestedAt: row.requested_at,
    createdAt: row.created_at ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    activeSince: row.active_since ?? undefined,
    putBackAt: row.put_back_at ?? undefined,
    drainingSince: row.draining_since ?? undefined,
    dueForRemovalAt: row.due_for_removal_at ?? undefined,
    scopesAsked: row.scopes_asked,
    scopesGranted: row.scopes_granted ?? [],
    deliveredTo: row.delivered_to,
    note: row.note ?? undefined,
  };
}

// Writes the ledger of API keys. Each change is one transaction with its event; secrets are here only sealed.

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
      return updateKey(tx, change.intentId, { state: "orphan", step: null, note });
    case "stored":
      return storeKey(tx, job, change.intentId, change.created, sealed);
    case "verified":
      return updateKey(tx, change.intentId, { step: "verified", verified_at: NOW });
    case "delivered":
      return recordDelivery(tx, job.name, change.sink, change.intentId);
    case "active":
      return promote(tx, job.name, change.intentId, change.putBack);
    case "abandoned":
      return updateKey(tx, change.intentId, {
        state: "draining",
        step: null,
        draining_since: NOW,
        due_for_removal_at: NOW,
        note,
      });
    case "rollback":
      return updateRotation(tx, job.name, { rollback_to: change.intentId });
    case "due-for-removal":
      return updateKey(tx, change.intentId, { due_for_removal_at: NOW, note });
    case "in-use":
      return updateKey(tx, change.intentId, { due_for_removal_at: null, note });
    case "kept":
      return updateKey(tx, change.intentId, { note });
    case "retired":
      // What nobody needs any more is not kept, sealed or not.
      return updateKey(tx, change.intentId, {
        state: "retired",
        step: null,
        retired_at: NOW,
        sealed: null,
        master_key: null,
        note,
      });
    case "found":
      return updateKey(tx, change.intentId, { api_key_id: change.apiKeyId, note });
    case "failed":
      return updateRotation(tx, job.name, { failed_attempts: sql<number>`failed_attempts + 1`, last_error: note });
    case "recovered":
      return updateRotation(tx, job.name, { failed_attempts: 0, last_error: null });
  }
}

// The statements that change rows of the key ledger. Each throws where it changes nothing: a plan that is not about this
// ledger must not look as if it had been carried out.

type SealedText = { readonly text: string; readonly masterKey: string };

const NOW = sql<Date>`clock_timestamp()`;

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

async function removeIntent(tx: Tx, intentId: string): Promise<void> {
  const removed = await tx
    .deleteFrom("usage_export.api_key")
    .where("intent_id", "=", intentId)
    .where("step", "=", "intent")
    .executeTakeFirst();
  requireOneRow(removed.numDeletedRows, intentId);
}

async function storeKey(
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
  requireOneRow(stored.numUpdatedRows, intentId);
}

async function recordDelivery(tx: Tx, rotation: string, sink: string, intentId: string): Promise<void> {
  await sql`
    insert into usage_export.key_delivery (rotation, sink, intent_id) values (${rotation}, ${sink}, ${intentId})
    on conflict (rotation, sink) do update set intent_id = excluded.intent_id, delivered_at = clock_timestamp()
  `.execute(tx);
}

/** In one transaction: at no moment are there two keys in use, or none. */
async function promote(tx: Tx, rotation: string, intentId: string, putBack: boolean): Promise<void> {
  await tx
    .updateTable("usage_export.api_key")
    .set({ state: "draining", draining_since: NOW })
    .where("rotation", "=", rotation)
    .where("state", "=", "active")
    .execute();
  await updateKey(tx, intentId, {
    state: "active",
    step: null,
    active_since: NOW,
    put_back_at: putBack ? NOW : null,
    draining_since: null,
    due_for_removal_at: null,
    note: null,
  });
  await updateRotation(tx, rotation, { failed_attempts: 0, last_error: null, rollback_to: null });
}

async function updateKey(
  tx: Tx,
  intentId: string,
  change: UpdateObject<Tables, "usage_export.api_key">,
): Promise<void> {
  const changed = await tx
    .updateTable("usage_export.api_key")
    .set(change)
    .where("intent_id", "=", intentId)
    .executeTakeFirst();
  requireOneRow(changed.numUpdatedRows, intentId);
}

async function updateRotation(
  tx: Tx,
  name: string,
  change: UpdateObject<Tables, "usage_export.rotation">,
): Promise<void> {
  await tx.updateTable("usage_export.rotation").set(change).where("name", "=", name).execute();
}

function requireOneRow(rows: bigint, intentId: string): void {
  if (rows !== 1n)
    throw new AppError("database", `the ledger has no key ${intentId} in the state that this change is for`);
}

// The history of API keys: who changed what, when and why.

export type KeyEvent = {
  readonly rotation: string;
  readonly intentId: string | undefined;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

/** An event that is no change of the ledger. */
export async function recordEvent(db: Database, event: KeyEvent): Promise<void> {
  await inTransaction(db, (tx) => insertEvent(tx, event, undefined));
}

/** False where the change has its event already: it was made by an attempt whose answer was lost. */
export async function insertEvent(tx: Tx, event: KeyEvent, changeId: string | undefined): Promise<boolean> {
  const { rotation, intentId, event: name, actor, reason } = event;
  const inserted = await tx
    .insertInto("usage_export.key_event")
    .values({
      change_id: changeId ?? null,
      rotation,
      intent_id: intentId ?? null,
      event: name,
      actor,
      reason: storableText(reason),
    })
    .onConflict((conflict) => conflict.column("change_id").doNothing())
    .returning("event_id")
    .execute();
  return inserted.length > 0;
}

/** Who delivered a key there last. */
export async function lastDeliveredBy(
  db: Database,
  rotation: string,
  intentId: string,
  sink: string,
): Promise<string | undefined> {
  const row = await inTransaction(db, (tx) =>
    tx
      .selectFrom("usage_export.key_event")
      .select("actor")
      .where("rotation", "=", rotation)
      .where("intent_id", "=", intentId)
      .where("event", "=", "delivered")
      .where("reason", "=", storableText(`to ${sink}`))
      .orderBy("event_id", "desc")
      .limit(1)
      .executeTakeFirst(),
  );
  return row?.actor;
}
