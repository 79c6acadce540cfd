// Reads and writes the ledger of API keys. Each change is one transaction with its event: who changed which key, when and why. A secret is
// stored only sealed.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type QueryResult, type RawBuilder, sql } from "kysely";
import type { Logger } from "pino";
import type { RotationConfig } from "../../config/rotations.ts";
import { AppError, errorText } from "../../errors.ts";
import type { Ledger, LedgerKey } from "../../keys/plan.ts";
import { type MasterKeys, openSealedKey, sealKey } from "../../keys/seal.ts";
import type { Scrubber, Secret } from "../../secret.ts";
import { storableText } from "../../text.ts";
import type { Database } from "../connection/database.ts";
import { commitDurably, inTransaction, onlyRow, type Tx } from "../connection/transaction.ts";
import { type Lease, renewLease, requireLease } from "./lease.ts";
import { type SealedKey, sealedKey } from "./sealed-keys.ts";

export type NewKey = {
  readonly apiKeyId: string;
  readonly key: Secret;
  /** The granted scopes. The service may order or expand the requested ones; empty if it does not return them. */
  readonly scopes: readonly string[];
  /** By the service's clock, if it sent the time. */
  readonly created?: Date | undefined;
};

/**
 * One change: one transaction, with its event.
 * - `not-created`: the service certainly made no key for the intent
 * - `orphan`: the service made a key for the intent, or may have, and its secret is lost
 * - `found`: the service lists the orphan
 * - `active`: the key becomes active, and the one that was active drains
 * - `discarded`: the pending key will never be used
 * - `rollback`: a person asked for this key to be active again
 * - `in-use`: the key was due for removal, but it is still in use
 * - `kept`: the key is not deleted yet, for a reason that was not recorded before
 * - `recovered`: resets the count of failed attempts
 */
export type LedgerChange =
  | { readonly kind: "intent"; readonly intentId: string; readonly comment: string }
  | { readonly kind: "stored"; readonly intentId: string; readonly created: NewKey }
  | { readonly kind: "delivered"; readonly intentId: string; readonly sink: string }
  | { readonly kind: "active"; readonly intentId: string; readonly isRollback: boolean }
  | { readonly kind: "found"; readonly intentId: string; readonly apiKeyId: string }
  | { readonly kind: "not-created" | "rollback" | KeyChange; readonly intentId: string }
  | { readonly kind: "failed" | "recovered" };

/** The changes that only set columns of the key. */
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

/** How long storing a new key is retried while the database fails. Its secret is only in memory until then, and lost afterwards. */
const STORE_RETRY_MS_MAX = 60_000;
const STORE_RETRY_WAIT_MS = 1_000;

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
      const stored = await sealedKey(db, intentId);
      if (!stored) throw new AppError("database", `the ledger has no secret for ${intentId}`);
      const key = await openSealedKey(stored, masterKeys, scrubber);
      return { apiKeyId: stored.apiKeyId, key, scopesGranted };
    },
    /** Throws `stopped` if this process no longer has the rotation's lease. */
    confirmLease: () => renewLease(db, lease),
  };
}

/**
 * Returns the ledger of a rotation, and the time by the database's clock. Throws `config` if a key belongs to another project: it could not be
 * used or removed with the keys of the rotation's project.
 */
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
  const { now, ...rotation } = state;
  const ledger: Ledger = { ...rotation, keys };
  return { ledger, now };
}

/** Returns a row even for a rotation that has not run yet. */
async function selectState(tx: Tx, rotation: string) {
  return onlyRow(
    tx,
    sql<Omit<Ledger, "keys"> & { readonly now: Date }>`
      select clock_timestamp() as now, coalesce(failed_attempts, 0) as "failedAttempts", last_error as "lastError", rollback_to as "rollbackTo"
      from (values (${rotation}::text)) as asked (name) left join usage_export.rotation using (name)
    `,
  );
}

type StoredKey = LedgerKey & { readonly project: string; readonly projectId: string };

async function selectKeys(tx: Tx, rotation: string): Promise<readonly StoredKey[]> {
  const { rows } = await sql<StoredKey>`
    select project, project_id as "projectId", intent_id as "intentId", api_key_id as "apiKeyId", state, step, requested_at as "requestedAt",
      expires_at as "expiresAt", active_since as "activeSince", rollback_at as "rollbackAt", draining_since as "drainingSince",
      due_for_removal_at as "dueForRemovalAt", scopes_asked as "scopesAsked", coalesce(scopes_granted, '{}') as "scopesGranted", note,
      array(select sink from usage_export.key_delivery where intent_id = k.intent_id) as "heldBy"
    from usage_export.api_key k where rotation = ${rotation} and state <> 'retired' order by requested_at, intent_id
  `.execute(tx);
  return rows;
}

/** Throws `stopped`, and writes nothing, if another process has taken over the rotation. */
async function writeChange(db: Database, options: LedgerOptions, change: LedgerChange, reason: string): Promise<void> {
  const { job, lease, actor, masterKeys, log, newChangeId = randomUUID } = options;
  // One id for all attempts: an attempt that was committed, although its acknowledgement was lost, is not repeated.
  const changeId = newChangeId();
  const event = { rotation: job.name, intentId: intentIdOf(change), event: change.kind, actor, reason };
  const created = change.kind === "stored" ? change.created : undefined;
  const sealed = created && {
    secret: await sealKey(created.key, created.apiKeyId, masterKeys),
    masterKey: masterKeys.current.id,
  };
  const until = performance.now() + STORE_RETRY_MS_MAX;
  for (;;) {
    try {
      return await inTransaction(db, async (tx) => {
        await commitDurably(tx);
        await requireLease(tx, lease);
        if (await insertEvent(tx, event, changeId)) await applyChange(tx, job, change, storableText(reason), sealed);
      });
    } catch (error) {
      // The service shows a secret only once, so this process has the only copy: a short outage of the database must not lose it.
      if (!created || error instanceof AppError || performance.now() > until) throw error;
      const facts = { rotation: job.name, apiKeyId: created.apiKeyId, reason: errorText(error) };
      log.error(facts, "new key not stored yet");
      await sleep(STORE_RETRY_WAIT_MS);
    }
  }
}

type KeyEvent = {
  readonly rotation: string;
  /** The key's id in the ledger, which it has before the service makes it. Undefined if the event is about no single key. */
  readonly intentId: string | undefined;
  readonly event: string;
  readonly actor: string;
  readonly reason: string;
};

/** Records an event that changes no key. */
export async function recordEvent(db: Database, event: KeyEvent): Promise<void> {
  await inTransaction(db, (tx) => insertEvent(tx, event));
}

/** False if an event with this change id exists: an earlier attempt was committed, although its acknowledgement was lost. */
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

type Assignments = RawBuilder<unknown>;

/** `note` is the reason of the change. */
const KEY_CHANGES: Readonly<Record<KeyChange, (note: string) => Assignments>> = {
  orphan: (note) => sql`state = 'orphan', step = null, note = ${note}`,
  verified: () => sql`step = 'verified'`,
  discarded: (note) => sql`
    state = 'draining', step = null, draining_since = clock_timestamp(), due_for_removal_at = clock_timestamp(), note = ${note}
  `,
  "due-for-removal": (note) => sql`due_for_removal_at = clock_timestamp(), note = ${note}`,
  "in-use": (note) => sql`due_for_removal_at = null, note = ${note}`,
  kept: (note) => sql`note = ${note}`,
  // Nobody needs the secret any more, so it is not kept, even sealed.
  retired: (note) => sql`
    state = 'retired', step = null, retired_at = clock_timestamp(), sealed = null, master_key = null, note = ${note}
  `,
};

type Sealed = { readonly secret: string; readonly masterKey: string };

/** `sealed` is the sealed secret of a `stored` change. */
async function applyChange(tx: Tx, job: RotationConfig, change: LedgerChange, note: string, sealed?: Sealed) {
  switch (change.kind) {
    case "intent":
      await sql`
        insert into usage_export.api_key (intent_id, rotation, project_id, project, scopes_asked, comment, state, step, requested_at)
        values (
          ${change.intentId}, ${job.name}, ${job.project.id}, ${job.project.name}, ${job.scopes}, ${change.comment}, 'pending', 'intent',
          clock_timestamp()
        )
      `.execute(tx);
      return;
    case "not-created": {
      const remove = sql`delete from usage_export.api_key where intent_id = ${change.intentId} and step = 'intent'`;
      return requireOneRow(await remove.execute(tx), change.intentId);
    }
    case "stored":
      return updateKey(tx, change.intentId, createdKey(job, change.created, sealed), sql`step = 'intent'`);
    case "delivered":
      await sql`
        insert into usage_export.key_delivery (rotation, sink, intent_id) values (${job.name}, ${change.sink}, ${change.intentId})
        on conflict (rotation, sink) do update set intent_id = excluded.intent_id
      `.execute(tx);
      return;
    case "active":
      return promote(tx, job.name, change.intentId, change.isRollback);
    case "found":
      return updateKey(tx, change.intentId, sql`api_key_id = ${change.apiKeyId}, note = ${note}`);
    case "rollback":
      return updateRotation(tx, job.name, sql`rollback_to = ${change.intentId}`);
    case "failed":
      return updateRotation(tx, job.name, sql`failed_attempts = failed_attempts + 1, last_error = ${note}`);
    case "recovered":
      return updateRotation(tx, job.name, sql`failed_attempts = 0, last_error = null`);
    default:
      return updateKey(tx, change.intentId, KEY_CHANGES[change.kind](note));
  }
}

function createdKey({ expiresInDays }: RotationConfig, { apiKeyId, scopes, created }: NewKey, sealed?: Sealed) {
  // It expires so long after the request, which is before the create, so that the time is never later than the service's own.
  return sql`
    step = 'stored', api_key_id = ${apiKeyId}, created_at = ${created ?? null},
    scopes_granted = ${scopes.map((scope) => storableText(scope))}::text[],
    expires_at = requested_at + make_interval(days => ${expiresInDays ?? null}::integer),
    sealed = ${sealed?.secret ?? null}, master_key = ${sealed?.masterKey ?? null}
  `;
}

/** One transaction replaces the active key: readers never see two active keys, or none. */
async function promote(tx: Tx, rotation: string, intentId: string, isRollback: boolean): Promise<void> {
  await sql`
    update usage_export.api_key set state = 'draining', draining_since = clock_timestamp()
    where rotation = ${rotation} and state = 'active'
  `.execute(tx);
  const active = sql`
    state = 'active', step = null, active_since = clock_timestamp(), rollback_at = case when ${isRollback} then clock_timestamp() end,
    draining_since = null, due_for_removal_at = null, note = null
  `;
  await updateKey(tx, intentId, active);
  await updateRotation(tx, rotation, sql`failed_attempts = 0, last_error = null, rollback_to = null`);
}

async function updateKey(tx: Tx, intentId: string, changes: Assignments, condition = sql`true`): Promise<void> {
  const update = sql`update usage_export.api_key set ${changes} where intent_id = ${intentId} and ${condition}`;
  requireOneRow(await update.execute(tx), intentId);
}

async function updateRotation(tx: Tx, name: string, changes: Assignments): Promise<void> {
  await sql`update usage_export.rotation set ${changes} where name = ${name}`.execute(tx);
}

function requireOneRow({ numAffectedRows }: QueryResult<unknown>, intentId: string): void {
  if (numAffectedRows === 1n) return;
  throw new AppError("database", `the ledger has no key ${intentId} in the state that this change is for`);
}

/** Replaces the key's sealed text. Does nothing if another process has replaced it since `key` was read. */
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
