// Runs one cleanup step: a replaced key is marked due for removal, deleted or found gone. Each step is safe to repeat.

import { AppError } from "../errors.ts";
import { activeKey, type Ledger, type LedgerKey } from "./ledger.ts";
import { type CleanupStep, clockSkewText, graceLeft } from "./plan.ts";
import type { RotationJob } from "./policy.ts";
import type { RotationDeps, ServiceKey } from "./rotation-deps.ts";

/** Whether anything changed, and why the key was kept if a person should know. */
export type CleanupOutcome = { readonly did: boolean; readonly kept?: string };

const UNCHANGED: CleanupOutcome = { did: false };

export async function runCleanupStep(
  job: RotationJob,
  step: CleanupStep,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<CleanupOutcome> {
  switch (step.kind) {
    case "release":
      return markDueForRemoval(job, step.key, step.reason, deps, signal);
    case "delete":
      return deleteKey(job, step.key, step.reason, deps, signal);
    case "recheck":
      return { did: await recheckListed(step.key, deps, signal) };
    case "search":
      return { did: await searchOrphan(step.key, step.giveUp, deps, signal) };
  }
}

async function markDueForRemoval(
  job: RotationJob,
  key: LedgerKey,
  reason: string,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<CleanupOutcome> {
  const left = graceLeft(job, key, await currentLedger(deps), await trustedClocks(deps, signal));
  if (left !== undefined) return keepKey(key, left, deps);
  const { seen, text } = await deps.lastUse(key, signal);
  if (seen === "yes") return keepKey(key, `replaced key still in use: ${text}`, deps);
  const how = seen === "unknown" ? `by its age alone: ${text}` : text;
  await deps.writeLedger({ kind: "due-for-removal", intentId: key.intentId }, `${reason}; ${how}`);
  return { did: true };
}

/**
 * A key is deleted only on what the service shows now, whatever was known when it became due: nothing at the service protects a
 * key that somebody uses, the calling key or a last one.
 */
async function deleteKey(
  job: RotationJob,
  key: LedgerKey,
  reason: string,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<CleanupOutcome> {
  const { apiKeyId, intentId } = key;
  if (apiKeyId === undefined) return UNCHANGED;
  const clocks = await trustedClocks(deps, signal);
  // A key that was never in use has no grace.
  const left = key.activeSince && graceLeft(job, key, await currentLedger(deps), clocks);
  if (left !== undefined) return keepKey(key, left, deps);
  const { seen, text } = await deps.lastUse(key, signal);
  if (seen === "yes") {
    const used = `not deleted: ${text}`;
    if (key.dueForRemovalAt) await deps.writeLedger({ kind: "in-use", intentId }, used);
    return keepKey(key, used, deps);
  }
  if (seen === "unknown" && job.retire !== "delete-by-age") {
    if (await recheckListed(key, deps, signal)) return { did: true };
    const kept = `${reason}; not deleted: ${text}`;
    // Logged once, not in every run.
    if (key.note !== kept) await deps.writeLedger({ kind: "kept", intentId }, kept);
    return keepKey(key, kept, deps);
  }
  const [listed, callerIds] = await Promise.all([deps.list(signal), deps.callerIds(signal)]);
  if (callerIds.includes(apiKeyId))
    return keepKey(key, "key not deleted: it is the one this rotation calls with", deps);
  if (listed && !listed.some((other) => other.apiKeyId !== apiKeyId)) {
    return keepKey(key, "key not deleted: it is the last one", deps);
  }
  await deps.confirmLease();
  const outcome = await deps.remove(apiKeyId, signal);
  const how = outcome === "deleted" ? "deleted at the service" : "the service had it no more";
  const why = seen === "unknown" ? `by its age alone: ${text}` : text;
  await deps.writeLedger({ kind: "retired", intentId }, `${reason}; ${why}; ${how}`);
  return { did: true };
}

function keepKey({ apiKeyId }: LedgerKey, kept: string, { log }: RotationDeps): CleanupOutcome {
  log.warn({ apiKeyId, reason: kept }, "replaced key kept");
  return { did: false, kept };
}

/** Throws if the database's clock has jumped: all ages in the ledger are computed with it. */
async function trustedClocks(deps: RotationDeps, signal: AbortSignal) {
  const clocks = await deps.clocks(signal);
  const doubt = clockSkewText(clocks);
  if (doubt !== undefined) throw new AppError("database", doubt);
  return clocks;
}

async function currentLedger(deps: RotationDeps): Promise<Ledger> {
  return (await deps.readLedger()).ledger;
}

async function searchOrphan(
  key: LedgerKey,
  giveUp: boolean,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const listed = await deps.list(signal);
  const { intentId } = key;
  const found = listed?.find(({ comment }) => comment.includes(intentId));
  if (found) {
    const { apiKeyId } = found;
    await deps.writeLedger({ kind: "found", intentId, apiKeyId }, "the service lists a key with its comment");
    return true;
  }
  if (!giveUp || !(await isCompleteList(listed, deps))) return false;
  await trustedClocks(deps, signal);
  await deps.writeLedger({ kind: "retired", intentId }, "the service lists no key with its comment");
  return true;
}

async function recheckListed(key: LedgerKey, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  const listed = await deps.list(signal);
  if (listed?.some(({ apiKeyId }) => apiKeyId === key.apiKeyId) || !(await isCompleteList(listed, deps))) return false;
  await deps.writeLedger({ kind: "retired", intentId: key.intentId }, "the service lists it no more");
  return true;
}

/** A list without the key in use is not of all keys, and says nothing of those that it does not show. */
async function isCompleteList(listed: readonly ServiceKey[] | undefined, deps: RotationDeps): Promise<boolean> {
  const active = activeKey(await currentLedger(deps))?.apiKeyId;
  return active !== undefined && listed?.some(({ apiKeyId }) => apiKeyId === active) === true;
}
