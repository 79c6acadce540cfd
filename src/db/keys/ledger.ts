// Reads and writes the ledger of API keys. Each change is stored in one transaction with an event: who changed which key, when and why.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { sql, type UpdateObject } from "kysely";
import type { Logger } from "pino";
import type { RotationConfig } from "../../config/rotations.ts";
import { AppError, errorText } from "../../errors.ts";
import type { LedgerKey, RotationState } from "../../keys/rotation-plan.ts";
import { type MasterKeys, openSealedKey, sealKey } from "../../keys/seal.ts";
import type { Scrubber, Secret } from "../../secret.ts";
import { storableText } from "../../text.ts";
import type { Database } from "../connection/database.ts";
import { commitDurably, inTransaction, type Tx } from "../connection/transaction.ts";
import type { Tables } from "../schema.ts";
import { type Lease, renewLease, requireLease } from "./lease.ts";
import { readSealedKey, type SealedKey } from "./sealed-keys.ts";

export type NewKey = {
  readonly apiKeyId: string;
  readonly key: Secret;
  /** The granted scopes: the service may reorder or expand the requested ones. Empty if it does not return them. */
  readonly scopes: readonly string[];
  /** By the service's clock. Undefined if the service sent no time. */
  readonly created?: Date | undefined;
};

/**
 * What happened to a key or a rotation; keys/rotation-plan.ts names the changes of each step.
 * - `not-created`: the service certainly made no key for the intent
 * - `orphan`: the service made a key for the intent, or may have, and its secret is lost; `found`: the service lists that key
 * - `in-use`: the key was due for removal, but was seen in use again
 * - `kept`: the key is due for deletion, but is not deleted yet; written once for each reason
 */
export type LedgerChange =
  | { readonly kind: "intent"; readonly intentId: string; readonly comment: string }
  | { readonly kind: "stored"; readonly intentId: string; readonly newKey: NewKey }
  | { readonly kind: "delivered"; readonly intentId: string; readonly sink: string }
  | { readonly kind: "active"; readonly intentId: string; readonly isRollback: boolean }
  | { readonly kind: "found"; readonly intentId: string; readonly apiKeyId: string }
  | { readonly kind: "not-created" | "rollback" | KeyChange; readonly intentId: string }
  | { readonly kind: "failed" | "recovered" };

/** Changes that only set columns of the key. */
type KeyChange = "orphan" | "verified" | "discarded" | "due-for-removal" | "in-use" | "kept" | "retired";

type LedgerOptions = {
  readonly job: RotationConfig;
  readonly lease: Lease;
  readonly actor: string;
  readonly masterKeys: MasterKeys;
  readonly scrubber: Pick<Scrubber, "add" | "scrub">;
  readonly log: Logger;
  /** For tests. */
  readonly newChangeId?: () => string;
};

/** How long storing a new key is retried if the database fails. The service returns a secret once, so this process has the only copy. */
const STORE_RETRY_MS_MAX = 60_000;
const STORE_RETRY_WAIT_MS = 1_000;

const NOW = sql<Date>`clock_timestamp()`;

export type OpenedKey = Pick<LedgerKey, "scopesGranted"> & { readonly apiKeyId: string; readonly key: Secret };
export type KeyLedger = ReturnType<typeof openKeyLedger>;

/** The ledger of one rotation, for the process that holds its lease. */
export function openKeyLedger(db: Database, options: LedgerOptions) {
  const { job, lease, masterKeys, scrubber, log } = options;
  return {
    read: () => readLedger(db, job),
    /** Throws `stopped` if another process has taken over the rotation. */
    async write(change: LedgerChange, reason: string): Promise<void> {
      await writeChange(db, options, change, scrubber.scrub(reason));
      log.info({ change: change.kind, intentId: intentIdOf(change), reason }, "key ledger changed");
    },
    async openKey({ intentId, scopesGranted }: LedgerKey): Promise<OpenedKey> {
      const stored = await readSealedKey(db, intentId);
      if (!stored) throw new AppError("database", `the ledger has no secret for ${intentId}`);
      const key = await openSealedKey(stored, masterKeys, scrubber);
      return { apiKeyId: stored.apiKeyId, key, scopesGranted };
    },
    confirmLease: () => renewLease(db, lease),
  };
}

/** `now` is by the database's clock. Throws `config` if a key belongs to another project: no key of this project could delete it. */
export async function readLedger(db: Database, { name, project }: Pick<RotationConfig, "name" | "project">) {
  const { state, keys } = await inTransaction(db, async (tx) => ({
    state: await selectState(tx, name),
    keys: await selectKeys(tx, name),
  }));
  const foreign = keys.find(({ projectId }) => projectId !== project.id);
  if (foreign) {
    const text = `the rotation ${name} has keys of another project (${foreign.project}, ${foreign.projectId}) in the ledger; give the rotation of ${project.name} a name of its own`;
    throw new AppError("config", text);
  }
  const { now, failedAttempts, ...rotation } = state;
  const ledger: RotationState = { ...rotation, failedAttempts: failedAttempts ?? 0, keys };
  return { ledger, now };
}

/** Returns a row even for a rotation that has not run yet. */
async function selectState(tx: Tx, rotation: string) {
  return tx
    .selectFrom(tx.selectNoFrom(NOW.as("now")).as("clock"))
    .leftJoin("usage_export.rotation as r", (join) => join.on("r.name", "=", rotation))
    .select(["now", "failed_attempts as failedAttempts", "last_error as lastError", "rollback_to as rollbackTo"])
    .executeTakeFirstOrThrow();
}

async function selectKeys(tx: Tx, rotation: string) {
  return tx
    .selectFrom("usage_export.api_key as k")
    .select(["project", "project_id as projectId", "intent_id as intentId", "api_key_id as apiKeyId", "state", "step"])
    .select(["requested_at as requestedAt", "expires_at as expiresAt", "active_since as activeSince"])
    .select(["rollback_at as rollbackAt", "draining_since as drainingSince", "due_for_removal_at as dueForRemovalAt"])
    .select(["scopes_asked as scopesAsked", "note"])
    .select(sql<string[]>`coalesce(scopes_granted, '{}')`.as("scopesGranted"))
    .select(sql<string[]>`array(select sink from usage_export.key_delivery where intent_id = k.intent_id)`.as("heldBy"))
    .where("rotation", "=", rotation)
    .where("state", "<>", "retired")
    .orderBy("requested_at")
    .orderBy("intent_id")
    .execute();
}

async function writeChange(db: Database, options: LedgerOptions, change: LedgerChange, reason: string): Promise<void> {
  const { job, lease, actor, masterKeys, log, newChangeId = randomUUID } = options;
  const changeId = newChangeId();
  const event = { rotation: job.name, intentId: intentIdOf(change), event: change.kind, actor, reason };
  const newKey = change.kind === "stored" ? change.newKey : undefined;
  const sealed = newKey && {
    sealed: await sealKey(newKey.key, newKey.apiKeyId, masterKeys),
    master_key: masterKeys.current.id,
  };
  const untilMs = performance.now() + STORE_RETRY_MS_MAX;
  for (;;) {
    try {
      return await inTransaction(db, async (tx) => {
        await commitDurably(tx);
        await requireLease(tx, lease);
        if (await insertEvent(tx, event, changeId)) await applyChange(tx, job, change, storableText(reason), sealed);
      });
    } catch (error) {
      if (!newKey || error instanceof AppError || performance.now() > untilMs) throw error;
      log.error({ rotation: job.name, apiKeyId: newKey.apiKeyId, reason: errorText(error) }, "new key not stored yet");
      await sleep(STORE_RETRY_WAIT_MS);
    }
  }
}

type KeyEvent = {
  readonly rotation: string;
  /** The key's id in the ledger, given before the service makes the key. Undefined if the event is not about one key. */
  readonly intentId: string | undefined;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

/** Records an event that changes no key. */
export async function recordEvent(db: Database, event: KeyEvent): Promise<void> {
  await inTransaction(db, (tx) => insertEvent(tx, event));
}

/** Returns false if an earlier attempt with this change id was committed and only its acknowledgement was lost. */
async function insertEvent(tx: Tx, { rotation, intentId, event, actor, reason }: KeyEvent, changeId?: string) {
  const { rows } = await sql`
    insert into usage_export.key_event (change_id, rotation, intent_id, event, actor, reason)
    values (${changeId ?? null}, ${rotation}, ${intentId ?? null}, ${event}, ${actor}, ${storableText(reason)})
    on conflict (change_id) do nothing returning event_id
  `.execute(tx);
  return rows.length > 0;
}

function intentIdOf(change: LedgerChange): string | undefined {
  return "intentId" in change ? change.intentId : undefined;
}

type KeyPatch = UpdateObject<Tables, "usage_export.api_key">;
const KEY_PATCHES: Readonly<Record<KeyChange, (note: string) => KeyPatch>> = {
  orphan: (note) => ({ state: "orphan", step: null, note }),
  verified: () => ({ step: "verified" }),
  discarded: (note) => ({ state: "draining", step: null, draining_since: NOW, due_for_removal_at: NOW, note }),
  "due-for-removal": (note) => ({ due_for_removal_at: NOW, note }),
  "in-use": (note) => ({ due_for_removal_at: null, note }),
  kept: (note) => ({ note }),
  // Nobody needs the secret any more, so it is not kept, even sealed.
  retired: (note) => ({ state: "retired", step: null, retired_at: NOW, sealed: null, master_key: null, note }),
};

/** `sealed`: the columns of the sealed secret, only for the change `stored`. */
async function applyChange(tx: Tx, job: RotationConfig, change: LedgerChange, note: string, sealed?: KeyPatch) {
  switch (change.kind) {
    case "intent":
      await sql`
        insert into usage_export.api_key (intent_id, rotation, project_id, project, comment, scopes_asked, state, step, requested_at)
        values (${change.intentId}, ${job.name}, ${job.project.id}, ${job.project.name}, ${change.comment}, ${job.scopes}::text[],
          'pending', 'intent', ${NOW})
      `.execute(tx);
      return;
    case "not-created": {
      const removed = tx.deleteFrom("usage_export.api_key").where("intent_id", "=", change.intentId);
      const { numDeletedRows } = await removed.where("step", "=", "intent").executeTakeFirst();
      return requireOneRow(numDeletedRows, change.intentId);
    }
    case "stored":
      return updateKey(tx, change.intentId, { ...createdKeyPatch(job, change.newKey), ...sealed }, "intent");
    case "delivered":
      await sql`
        insert into usage_export.key_delivery (rotation, sink, intent_id) values (${job.name}, ${change.sink}, ${change.intentId})
        on conflict (rotation, sink) do update set intent_id = excluded.intent_id
      `.execute(tx);
      return;
    case "active":
      return promote(tx, job.name, change.intentId, change.isRollback);
    case "found":
      return updateKey(tx, change.intentId, { api_key_id: change.apiKeyId, note });
    case "rollback":
      return updateRotation(tx, job.name, { rollback_to: change.intentId });
    case "failed":
      return updateRotation(tx, job.name, { failed_attempts: sql<number>`failed_attempts + 1`, last_error: note });
    case "recovered":
      return updateRotation(tx, job.name, { failed_attempts: 0, last_error: null });
    default:
      return updateKey(tx, change.intentId, KEY_PATCHES[change.kind](note));
  }
}

function createdKeyPatch({ expiresInDays }: RotationConfig, { apiKeyId, scopes, created }: NewKey): KeyPatch {
  return {
    step: "stored",
    api_key_id: apiKeyId,
    created_at: created,
    scopes_granted: scopes.map((scope) => storableText(scope)),
    // Counted from before the create was sent, so that this time is never later than the service's.
    expires_at: expiresInDays === undefined ? null : sql<Date>`requested_at + make_interval(days => ${expiresInDays})`,
  };
}

/** Replaces the active key. The transaction keeps readers from seeing two active keys or none. */
async function promote(tx: Tx, rotation: string, intentId: string, isRollback: boolean): Promise<void> {
  await sql`
    update usage_export.api_key set state = 'draining', draining_since = clock_timestamp()
    where rotation = ${rotation} and state = 'active'
  `.execute(tx);
  await updateKey(tx, intentId, {
    ...{ state: "active", step: null, active_since: NOW, rollback_at: isRollback ? NOW : null },
    ...{ draining_since: null, due_for_removal_at: null, note: null },
  });
  await updateRotation(tx, rotation, { failed_attempts: 0, last_error: null, rollback_to: null });
}

async function updateKey(tx: Tx, intentId: string, patch: KeyPatch, requiredStep?: "intent"): Promise<void> {
  let update = tx.updateTable("usage_export.api_key").set(patch).where("intent_id", "=", intentId);
  if (requiredStep) update = update.where("step", "=", requiredStep);
  const { numUpdatedRows } = await update.executeTakeFirst();
  requireOneRow(numUpdatedRows, intentId);
}

async function updateRotation(tx: Tx, name: string, patch: UpdateObject<Tables, "usage_export.rotation">) {
  await tx.updateTable("usage_export.rotation").set(patch).where("name", "=", name).execute();
}

function requireOneRow(rows: bigint, intentId: string): void {
  if (rows === 1n) return;
  throw new AppError("database", `the ledger has no key ${intentId} in the state that this change needs`);
}

/** Replaces the sealed text of a key. Does nothing if another process has replaced it since the key was read. */
export async function replaceSealed(
  db: Database,
  { rotation, intentId, ...before }: SealedKey,
  { sealed, masterKey, actor }: { readonly sealed: string; readonly masterKey: string; readonly actor: string },
): Promise<void> {
  await inTransaction(db, async (tx) => {
    const { rows } = await sql`
      update usage_export.api_key set sealed = ${sealed}, master_key = ${masterKey}
      where intent_id = ${intentId} and sealed = ${before.sealed} returning intent_id
    `.execute(tx);
    const reason = `sealed with the master key ${masterKey}, before with ${before.masterKey}`;
    if (rows.length > 0) await insertEvent(tx, { rotation, intentId, event: "rewrapped", actor, reason });
  });
}
