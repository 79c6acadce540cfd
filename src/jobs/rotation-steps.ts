// The steps of a rotation: creates, stores, verifies, delivers, replaces and removes a key, at the service, in the ledger and at the sinks.
// Every step except the create is safe to repeat; the create is never repeated.

import { randomBytes } from "node:crypto";
import type { RotationConfig, Sink } from "../config/rotations.ts";
import type { KeyLedger, NewKey } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import {
  activeKey,
  type CleanupStep,
  type Inspection,
  type LedgerKey,
  type RotationStep,
  sinkId,
} from "../keys/rotation-plan.ts";
import { holdsScope, makesSelfHosted } from "../keys/scopes.ts";
import { isDamaged } from "../keys/seal.ts";
import { deliverKey, staleFiles, testSink } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";
import { createKey, deleteKey, fetchKeyInfo, listKeys, madeNoKey } from "../service/keys.ts";
import { DAY_SECONDS } from "../usage/days.ts";
import type { RotationContext } from "./context.ts";
import { lastUse, refusalReason, verifyKey } from "./key-checks.ts";

export type RotationRun = {
  readonly context: RotationContext;
  readonly rotation: RotationConfig;
  readonly ledger: KeyLedger;
  /** What was done, in order. */
  readonly did: string[];
  /** Which replaced keys were left unchanged, and why. */
  readonly kept: string[];
  readonly errors: string[];
};

/** Checks that the active key works and that its files still hold it, unless another key is replacing it already. */
export async function inspectActive({ context, rotation, ledger }: RotationRun): Promise<Inspection> {
  const { ledger: stored } = await ledger.read();
  const key = activeKey(stored);
  const isReplacing = stored.keys.some(({ state }) => state === "pending") || stored.rollbackTo !== null;
  if (!key || isReplacing) return {};
  try {
    const opened = await ledger.openKey(key);
    const refusal = await refusalReason(context, rotation, opened);
    return { refusal, stale: await staleFiles(rotation.deliver, key.heldBy, opened.key) };
  } catch (error) {
    // No later attempt can open a damaged sealed key, so it is replaced like a key that the service refuses.
    if (isDamaged(error)) return { refusal: errorText(error) };
    throw error;
  }
}

export async function takeStep(run: RotationRun, step: RotationStep): Promise<void> {
  const { context, rotation, ledger } = run;
  switch (step.kind) {
    case "create":
      return createNewKey(run, step.reason);
    case "mark-orphan":
      await ledger.write({ kind: "orphan", intentId: step.key.intentId }, step.reason);
      // Counted as a failure: otherwise a process that dies at every create would make a key at every start.
      return ledger.write({ kind: "failed" }, step.reason);
    case "verify":
      return verifyNewKey(run, step.key);
    case "deliver":
      return deliverToSinks(run, step.key, step.sinks);
    case "promote": {
      // Only a rollback promotes a draining key.
      const isRollback = step.key.state === "draining";
      return ledger.write({ kind: "active", intentId: step.key.intentId, isRollback }, step.reason);
    }
    case "discard":
      return ledger.write({ kind: "discarded", intentId: step.key.intentId }, step.reason);
    case "rollback":
      // The key may be deleted at the service by now, and a key that does not work must not become active.
      await verifyKey(context, rotation, await ledger.openKey(step.key));
      return ledger.write({ kind: "rollback", intentId: step.key.intentId }, step.reason);
    case "recover":
      return ledger.write({ kind: "recovered" }, step.reason);
  }
}

/** The intent is recorded before the POST, which is sent once. Its id is in the key's comment, so a lost key can be found. */
async function createNewKey({ context, rotation, ledger }: RotationRun, reason: string): Promise<void> {
  const { app, service, keyRing } = context;
  for (const sink of rotation.deliver) await testSink(sink);
  // A harmless call finds out which key works: the key ring repeats it with other keys, while a create must not be repeated.
  const creatorKey = await keyRing.useCreatorKey(rotation, async (key) => {
    await fetchKeyInfo(service, key, app.signal);
    return key;
  });
  const intentId = `ue-${randomBytes(6).toString("hex")}`;
  const comment = `${rotation.comment} [${intentId}]`;
  await ledger.write({ kind: "intent", intentId, comment }, reason);
  let newKey: NewKey;
  let mayHaveBeenSent = false;
  // Called before the create is sent, and again if the unsent call needs another permit. Throws if another process has the lease: nothing is sent.
  const beforeCreate = async () => {
    mayHaveBeenSent = false;
    await ledger.confirmLease();
    mayHaveBeenSent = true;
  };
  try {
    const { scopes, expiresInDays } = rotation;
    // A self-hosted key has no tags.
    const tags = makesSelfHosted(scopes) ? [] : rotation.tags;
    const expiresInSeconds = expiresInDays && expiresInDays * DAY_SECONDS;
    const request = { comment, scopes, tags, expiresInSeconds };
    newKey = await createKey(service, rotation.project.id, request, creatorKey, app.signal, beforeCreate);
  } catch (error) {
    const isNotCreated = !mayHaveBeenSent || madeNoKey(error, app.signal);
    await ledger.write({ kind: isNotCreated ? "not-created" : "orphan", intentId }, errorText(error));
    throw error;
  }
  app.scrubber.add(newKey.key);
  await ledger.write({ kind: "stored", intentId, newKey }, "the service made the key");
}

async function verifyNewKey({ context, rotation, ledger }: RotationRun, key: LedgerKey): Promise<void> {
  // The service may grant more than was asked for, and may list the scopes of a role in place of the role. If it does not say which scopes it
  // granted, only the call below shows what the key may do.
  const missing =
    key.scopesGranted.length > 0 ? key.scopesAsked.filter((scope) => !holdsScope(key.scopesGranted, scope)) : [];
  if (missing.length > 0) {
    const next = "it stays unused, and the current key stays. Fix the scopes and run: usage-export rotate --now";
    throw new AppError("unauthorized", `the new key ${key.apiKeyId} was not granted ${missing.join(", ")}; ${next}`);
  }
  await verifyKey(context, rotation, await ledger.openKey(key));
  await ledger.write({ kind: "verified", intentId: key.intentId }, "a call with it succeeded");
}

/** Delivers to every sink, even if one fails. The plan leaves out sinks whose delivery is recorded. */
async function deliverToSinks({ ledger }: RotationRun, key: LedgerKey, sinks: readonly Sink[]): Promise<void> {
  const opened = await ledger.openKey(key);
  const failures: AppError[] = [];
  for (const sink of sinks) {
    await ledger.confirmLease();
    const failure = await deliverKey(sink, opened).catch((error: unknown) => {
      if (error instanceof AppError) return error;
      throw error;
    });
    if (failure) failures.push(failure);
    else await ledger.write({ kind: "delivered", intentId: key.intentId, sink: sinkId(sink) }, `to ${sinkId(sink)}`);
  }
  if (failures[0]) throw failures[0];
}

// The cleanup of replaced and lost keys. Each function returns whether it did what the plan says.

export async function takeCleanupStep(run: RotationRun, step: CleanupStep): Promise<boolean> {
  switch (step.kind) {
    case "mark-due":
      return markDueForRemoval(run, step.key, step.reason);
    case "delete":
      return deleteUnused(run, step.key, step.reason);
    case "recheck":
      return retireUnlisted(run, step.key);
    case "search":
      return searchOrphan(run, step.key, step.giveUp);
  }
}

async function markDueForRemoval(run: RotationRun, key: LedgerKey, reason: string): Promise<boolean> {
  const { seen, text } = await lastUse(run.context, run.rotation, key);
  if (seen === "yes") return reportKept(run, key, `replaced key still in use: ${text}`);
  const proof = seen === "unknown" ? `by its age alone, as its use is not known: ${text}` : text;
  await run.ledger.write({ kind: "due-for-removal", intentId: key.intentId }, `${reason}; ${proof}`);
  return true;
}

/** Checks once more whether the key is used, because the service would delete even a key in use. */
async function deleteUnused(run: RotationRun, key: LedgerKey, reason: string): Promise<boolean> {
  const { context, rotation, ledger } = run;
  const { service, app, keyRing } = context;
  const { apiKeyId, intentId } = key;
  if (apiKeyId === null) return false;
  const { seen, text } = await lastUse(context, rotation, key);
  if (seen === "yes") {
    const why = `not deleted: ${text}`;
    if (key.dueForRemovalAt) await ledger.write({ kind: "in-use", intentId }, why);
    return reportKept(run, key, why);
  }
  if (seen === "unknown") {
    if (await retireUnlisted(run, key)) return true;
    const why = `${reason}; not deleted: ${text}`;
    // Written once, not in every run.
    if (key.note !== why) await ledger.write({ kind: "kept", intentId }, why);
    return reportKept(run, key, why);
  }
  const readInfo = (secret: Secret) => fetchKeyInfo(service, secret, app.signal);
  const infos = [await keyRing.useCreatorKey(rotation, readInfo), await keyRing.use(rotation.project, readInfo)];
  if (infos.some((info) => info?.apiKeyId === apiKeyId))
    return reportKept(run, key, "key not deleted: it is the one this rotation calls with");
  await ledger.confirmLease();
  const remove = (secret: Secret) => deleteKey(service, rotation.project.id, apiKeyId, secret, app.signal);
  const isDeleted = await keyRing.useCreatorKey(rotation, remove);
  const result = isDeleted ? "deleted at the service" : "the service no longer had it";
  await ledger.write({ kind: "retired", intentId }, `${reason}; ${text}; ${result}`);
  return true;
}

function reportKept({ context, kept }: RotationRun, key: LedgerKey, reason: string): false {
  context.app.log.warn({ apiKeyId: key.apiKeyId, reason }, "replaced key kept");
  kept.push(`${key.apiKeyId ?? key.intentId}: ${reason}`);
  return false;
}

async function searchOrphan(run: RotationRun, { intentId }: LedgerKey, giveUp: boolean): Promise<boolean> {
  const { listed, isComplete } = await listedKeys(run);
  const found = listed.find(({ comment }) => comment.includes(intentId));
  if (found) {
    const reason = "the service lists a key with this id in its comment";
    await run.ledger.write({ kind: "found", intentId, apiKeyId: found.apiKeyId }, reason);
    return true;
  }
  if (!giveUp || !isComplete) return false;
  await run.ledger.write({ kind: "retired", intentId }, "the service lists no key with this id in its comment");
  return true;
}

async function retireUnlisted(run: RotationRun, { apiKeyId, intentId }: LedgerKey): Promise<boolean> {
  const { listed, isComplete } = await listedKeys(run);
  if (!isComplete || listed.some((other) => other.apiKeyId === apiKeyId)) return false;
  await run.ledger.write({ kind: "retired", intentId }, "the service no longer lists it");
  return true;
}

/** A list that lacks even the active key is not complete, so it does not show whether another key exists. */
async function listedKeys({ context: { service, app, keyRing }, rotation, ledger }: RotationRun) {
  const list = (key: Secret) => listKeys(service, rotation.project.id, key, app.signal);
  const listed = (await keyRing.useCreatorKey(rotation, list)) ?? [];
  const active = activeKey((await ledger.read()).ledger)?.apiKeyId;
  return { listed, isComplete: listed.some(({ apiKeyId }) => apiKeyId === active) };
}
