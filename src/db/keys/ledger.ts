// Reads and writes the ledger of API keys. Each change is one transaction with its event; a secret is stored only sealed.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { sql, type UpdateObject } from "kysely";
import type { Logger } from "pino";
import { AppError, errorText } from "../../errors.ts";
import type { Ledger, LedgerChange, LedgerKey, PendingStep } from "../../keys/ledger.ts";
import type { RotationJob } from "../../keys/policy.ts";
import type { KeyLedger } from "../../keys/rotation-deps.ts";
import { type MasterKeys, openSealedKey, sealKey } from "../../keys/seal.ts";
import type { Scrubber } from "../../secret.ts";
import { storableText } from "../../text.ts";
import type { Database } from "../connection/database.ts";
import { commitDurably, inTransaction, type Tx } from "../connection/transaction.ts";
import type { Tables } from "../schema.ts";
import { insertEvent, sealedKey } from "./keystore.ts";
import { type Lease, renewLease, requireLease } from "./lease.ts";

type LedgerOptions = {
  readonly job: RotationJob;
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

const NOW = sql<Date>`clock_timestamp()`;

/** The ledger of one rotation, for the process that holds its lease. */
export function openKeyLedger(db: Database, options: LedgerOptions): KeyLedger {
  const { job, lease, masterKeys, scrubber, log } = options;
  return {
    read: () => readLedger(db, job),
    async write(change, reason) {
      await writeChange(db, options, change, scrubber.scrub(reason));
      log.info({ change: change.kind, intentId: intentIdOf(change), reason }, "key ledger changed");
    },
    async openKey(intentId) {
      const stored = await sealedKey(db, intentId);
      if (!stored) throw new AppError("database", `the ledger has no secret for ${intentId}`);
      return { apiKeyId: stored.apiKeyId, key: await openSealedKey(stored, masterKeys, scrubber) };
    },
    confirmLease: () => renewLease(db, lease),
  };
}

/**
 * All keys of a rotation except the retired ones, the oldest first, and the time by the database's clock. Throws `config` if a key
 * belongs to another project than the rotation: it could not be used or removed with the keys of the rotation's project.
 */
export async function readLedger(
  db: Database,
  { name, project }: Pick<RotationJob, "name" | "project">,
): Promise<{ readonly ledger: Ledger; readonly now: Date }> {
  const { state, keys } = await inTransaction(db, async (tx) => ({
    state: await selectState(tx, name),
    keys: await selectKeys(tx, name),
  }));
  const foreign = keys.find(({ project_id }) => project_id !== project.id);
  if (foreign) {
    throw new AppError(
      "config",
      `the rotation ${name} has keys of another project (${foreign.project}, ${foreign.project_id}) in the ledger; give the rotation of ${project.name} a name of its own`,
    );
  }
  const ledger = {
    failedAttempts: state.failed_attempts ?? 0,
    lastError: state.last_error ?? undefined,
    rollbackTo: state.rollback_to ?? undefined,
    keys: keys.map(toLedgerKey),
  };
  return { ledger, now: state.now };
}

/** Returns a row even for a rotation that has not run yet. */
async function selectState(tx: Tx, rotation: string) {
  return tx
    .selectFrom(tx.selectNoFrom(NOW.as("now")).as("clock"))
    .leftJoin("usage_export.rotation as r", (join) => join.on("r.name", "=", rotation))
    .select(["clock.now", "r.failed_attempts", "r.last_error", "r.rollback_to"])
    .executeTakeFirstOrThrow();
}

async function selectKeys(tx: Tx, rotation: string) {
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

function toLedgerKey(row: Awaited<ReturnType<typeof selectKeys>>[number]): LedgerKey {
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

/** Throws `stopped`, and writes nothing, if another process has taken over the rotation. */
async function writeChange(db: Database, options: LedgerOptions, change: LedgerChange, reason: string): Promise<void> {
  const { job, lease, actor, masterKeys, log, newChangeId = randomUUID } = options;
  // One id for all attempts: an attempt that was committed, although its acknowledgement was lost, is not repeated.
  const changeId = newChangeId();
  const event = { rotation: job.name, intentId: intentIdOf(change), event: change.kind, actor, reason };
  const created = change.kind === "stored" ? change.created : undefined;
  const sealed = created && {
    sealed: await sealKey(created.key, created.apiKeyId, masterKeys),
    master_key: masterKeys.current.id,
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

function intentIdOf(change: LedgerChange): string | undefined {
  return "intentId" in change ? change.intentId : undefined;
}

type KeyPatch = UpdateObject<Tables, "usage_export.api_key">;

/** `sealed`: the columns of the sealed secret, for a `stored` change. */
async function applyChange(
  tx: Tx,
  job: RotationJob,
  change: LedgerChange,
  note: string,
  sealed: KeyPatch | undefined,
): Promise<void> {
  switch (change.kind) {
    case "intent":
      await tx
        .insertInto("usage_export.api_key")
        .values({
          intent_id: change.intentId,
          rotation: job.name,
          project_id: job.project.id,
          project: job.project.name,
          state: "pending",
          step: "intent",
          comment: change.comment,
          scopes_asked: job.scopes,
          requested_at: NOW,
        })
        .execute();
      return;
    case "not-created": {
      const removed = tx.deleteFrom("usage_export.api_key").where("intent_id", "=", change.intentId);
      const { numDeletedRows } = await removed.where("step", "=", "intent").executeTakeFirst();
      return requireOneRow(numDeletedRows, change.intentId);
    }
    case "orphan":
      return updateKey(tx, change.intentId, { state: "orphan", step: null, note });
    case "stored":
      return storeKey(tx, job, change, sealed);
    case "verified":
      return updateKey(tx, change.intentId, { step: "verified", verified_at: NOW });
    case "delivered":
      await tx
        .insertInto("usage_export.key_delivery")
        .values({ rotation: job.name, sink: change.sink, intent_id: change.intentId })
        .onConflict((conflict) =>
          conflict.columns(["rotation", "sink"]).doUpdateSet({ intent_id: change.intentId, delivered_at: NOW }),
        )
        .execute();
      return;
    case "active":
      return promote(tx, job.name, change.intentId, change.putBack);
    case "abandoned": {
      const unused = { state: "draining", step: null, draining_since: NOW, due_for_removal_at: NOW } as const;
      return updateKey(tx, change.intentId, { ...unused, note });
    }
    case "rollback":
      return updateRotation(tx, job.name, { rollback_to: change.intentId });
    case "due-for-removal":
      return updateKey(tx, change.intentId, { due_for_removal_at: NOW, note });
    case "in-use":
      return updateKey(tx, change.intentId, { due_for_removal_at: null, note });
    case "kept":
      return updateKey(tx, change.intentId, { note });
    case "retired": {
      // Nobody needs the secret any more, so it is not kept, even sealed.
      const retired = { state: "retired", step: null, retired_at: NOW, sealed: null, master_key: null } as const;
      return updateKey(tx, change.intentId, { ...retired, note });
    }
    case "found":
      return updateKey(tx, change.intentId, { api_key_id: change.apiKeyId, note });
    case "failed":
      return updateRotation(tx, job.name, { failed_attempts: sql<number>`failed_attempts + 1`, last_error: note });
    case "recovered":
      return updateRotation(tx, job.name, { failed_attempts: 0, last_error: null });
  }
}

async function storeKey(
  tx: Tx,
  { expiresInDays }: RotationJob,
  { intentId, created }: Extract<LedgerChange, { kind: "stored" }>,
  sealed: KeyPatch | undefined,
): Promise<void> {
  const createdAtMs = Date.parse(created.created ?? "");
  const stored = {
    step: "stored",
    api_key_id: created.apiKeyId,
    scopes_granted: created.scopes.map((scope) => storableText(scope)),
    created_at: Number.isNaN(createdAtMs) ? null : new Date(createdAtMs),
    // Counted from the request, which is before the create: so this time is never later than the service's own.
    expires_at: expiresInDays === undefined ? null : sql<Date>`requested_at + make_interval(days => ${expiresInDays})`,
  } as const;
  await updateKey(tx, intentId, { ...stored, ...sealed }, "intent");
}

/** One transaction replaces the active key: readers never see two active keys, or none. */
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

/** With `step`, only a key at that step is updated. */
async function updateKey(tx: Tx, intentId: string, patch: KeyPatch, step?: PendingStep): Promise<void> {
  let update = tx.updateTable("usage_export.api_key").set(patch).where("intent_id", "=", intentId);
  if (step) update = update.where("step", "=", step);
  const { numUpdatedRows } = await update.executeTakeFirst();
  requireOneRow(numUpdatedRows, intentId);
}

async function updateRotation(
  tx: Tx,
  name: string,
  patch: UpdateObject<Tables, "usage_export.rotation">,
): Promise<void> {
  await tx.updateTable("usage_export.rotation").set(patch).where("name", "=", name).execute();
}

/** Throws if a change found no row: the ledger is not in the state that the change was planned for. */
function requireOneRow(rows: bigint, intentId: string): void {
  if (rows !== 1n)
    throw new AppError("database", `the ledger has no key ${intentId} in the state that this change is for`);
}
