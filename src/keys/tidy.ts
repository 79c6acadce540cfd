// Does one step of cleaning up. Each is safe to repeat, and returns whether anything changed.

import { activeKey, type LedgerKey } from "./ledger.ts";
import type { CleanupStep } from "./plan-cleanup.ts";
import type { RotationDeps, ServiceKey } from "./rotation-deps.ts";

export async function tidy(step: CleanupStep, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  switch (step.kind) {
    case "release":
      return release(step.key, step.reason, deps, signal);
    case "delete":
      return remove(step.key, step.reason, deps, signal);
    case "recheck":
      return recheck(step.key, deps, signal);
    case "search":
      return search(step.key, step.giveUp, deps, signal);
  }
}

async function release(key: LedgerKey, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  const { seen, text } = await deps.seenInUse(key, signal);
  if (seen === "yes") {
    deps.log.warn({ apiKeyId: key.apiKeyId, reason: text }, "replaced key still in use");
    return false;
  }
  await deps.writeLedger({ kind: "due-for-removal", intentId: key.intentId }, `${reason}; ${text}`);
  return true;
}

/** The plan never names the key in use; what the service knows guards once more, as nothing there protects a last key. */
async function remove(key: LedgerKey, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  if (key.apiKeyId === undefined) return false;
  const [listed, callerId] = await Promise.all([deps.list(signal), deps.callerId(signal)]);
  if (callerId === key.apiKeyId) {
    deps.log.warn({ apiKeyId: key.apiKeyId }, "key not deleted: it is the one this rotation calls with");
    return false;
  }
  if (listed && !listed.some(({ apiKeyId }) => apiKeyId !== key.apiKeyId)) {
    deps.log.warn({ apiKeyId: key.apiKeyId }, "key not deleted: it is the last one");
    return false;
  }
  await deps.confirmLease();
  const outcome = await deps.remove(key.apiKeyId, signal);
  const how = outcome === "deleted" ? "deleted at the service" : "the service had it no more";
  await deps.writeLedger({ kind: "retired", intentId: key.intentId }, `${reason}; ${how}`);
  return true;
}

async function search(key: LedgerKey, giveUp: boolean, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  const listed = await deps.list(signal);
  const { intentId } = key;
  const found = listed?.find(({ comment }) => comment.includes(intentId));
  if (found) {
    const { apiKeyId } = found;
    await deps.writeLedger({ kind: "found", intentId, apiKeyId }, "the service lists a key with its comment");
    return true;
  }
  if (!giveUp || !(await isWhole(listed, deps))) return false;
  await deps.writeLedger({ kind: "retired", intentId }, "the service lists no key with its comment");
  return true;
}

async function recheck(key: LedgerKey, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  const listed = await deps.list(signal);
  if (listed?.some(({ apiKeyId }) => apiKeyId === key.apiKeyId) || !(await isWhole(listed, deps))) return false;
  await deps.writeLedger({ kind: "retired", intentId: key.intentId }, "the service lists it no more");
  return true;
}

/** A list without the key in use is not of all keys, and says nothing of those that it does not show. */
async function isWhole(listed: readonly ServiceKey[] | undefined, deps: RotationDeps): Promise<boolean> {
  const { ledger } = await deps.readLedger();
  const active = activeKey(ledger)?.apiKeyId;
  return active !== undefined && listed?.some(({ apiKeyId }) => apiKeyId === active) === true;
}
