// Runs one cleanup step: a replaced key is marked due for removal, deleted or found gone. Each step is safe to repeat.

import { AppError } from "../errors.ts";
import { activeKey, type LedgerKey } from "./ledger.ts";
import { type CleanupStep, clockSkewText } from "./plan.ts";
import type { RotationDeps, RotationTask, ServiceKey } from "./rotation-deps.ts";

/** `changed`: the ledger or the service was changed. `kept`: why the key was not removed; undefined if nobody has to know. */
type CleanupOutcome = { readonly changed: boolean; readonly kept?: string };

export async function runCleanupStep(task: RotationTask, step: CleanupStep): Promise<CleanupOutcome> {
  switch (step.kind) {
    case "mark-due":
      return markDueForRemoval(task, step.key, step.reason);
    case "delete":
      return deleteKey(task, step.key, step.reason);
    case "recheck":
      return { changed: await retireUnlisted(task.deps, step.key) };
    case "search":
      return { changed: await searchOrphan(task.deps, step.key, step.giveUp) };
  }
}

async function markDueForRemoval(task: RotationTask, key: LedgerKey, reason: string): Promise<CleanupOutcome> {
  const { deps } = task;
  await requireAgreeingClocks(deps);
  const { seen, text } = await deps.lastUse(key);
  if (seen === "yes") return keepKey(deps, key, `replaced key still in use: ${text}`);
  const proof = seen === "unknown" ? `by its age alone, as its use is not known: ${text}` : text;
  await deps.ledger.write({ kind: "due-for-removal", intentId: key.intentId }, `${reason}; ${proof}`);
  return { changed: true };
}

/**
 * Checks the key's use again right before the deletion, because it may have changed since the key became due. The service would
 * delete any key: one that is in use, the one that this rotation calls with, the project's last one.
 */
async function deleteKey(task: RotationTask, key: LedgerKey, reason: string): Promise<CleanupOutcome> {
  const { deps } = task;
  const { apiKeyId, intentId } = key;
  if (apiKeyId === undefined) return { changed: false };
  await requireAgreeingClocks(deps);
  const { seen, text } = await deps.lastUse(key);
  if (seen === "yes") {
    const kept = `not deleted: ${text}`;
    // The key is then no longer due for removal.
    if (key.dueForRemovalAt) await deps.ledger.write({ kind: "in-use", intentId }, kept);
    return keepKey(deps, key, kept);
  }
  if (seen === "unknown") {
    if (await retireUnlisted(deps, key)) return { changed: true };
    const kept = `${reason}; not deleted: ${text}`;
    // Written once, not in every run.
    if (key.note !== kept) await deps.ledger.write({ kind: "kept", intentId }, kept);
    return keepKey(deps, key, kept);
  }
  if ((await deps.callerIds()).includes(apiKeyId)) {
    return keepKey(deps, key, "key not deleted: it is the one this rotation calls with");
  }
  await deps.ledger.confirmLease();
  const outcome = await deps.remove(apiKeyId);
  const result = outcome === "deleted" ? "deleted at the service" : "the service no longer had it";
  await deps.ledger.write({ kind: "retired", intentId }, `${reason}; ${text}; ${result}`);
  return { changed: true };
}

function keepKey({ log }: RotationDeps, { apiKeyId }: LedgerKey, kept: string): CleanupOutcome {
  log.warn({ apiKeyId, reason: kept }, "replaced key kept");
  return { changed: false, kept };
}

/** Throws if the database's clock has jumped: all ages in the ledger are computed with it. */
async function requireAgreeingClocks(deps: RotationDeps): Promise<void> {
  const doubt = clockSkewText(await deps.clocks());
  if (doubt !== undefined) throw new AppError("database", doubt);
}

async function searchOrphan(deps: RotationDeps, { intentId }: LedgerKey, giveUp: boolean): Promise<boolean> {
  const listed = await deps.list();
  const found = listed?.find(({ comment }) => comment.includes(intentId));
  if (found) {
    const { apiKeyId } = found;
    await deps.ledger.write(
      { kind: "found", intentId, apiKeyId },
      "the service lists a key with this id in its comment",
    );
    return true;
  }
  if (!giveUp || !(await isCompleteList(deps, listed))) return false;
  await requireAgreeingClocks(deps);
  await deps.ledger.write({ kind: "retired", intentId }, "the service lists no key with this id in its comment");
  return true;
}

async function retireUnlisted(deps: RotationDeps, { apiKeyId, intentId }: LedgerKey): Promise<boolean> {
  const listed = await deps.list();
  if (listed?.some((other) => other.apiKeyId === apiKeyId) || !(await isCompleteList(deps, listed))) return false;
  await deps.ledger.write({ kind: "retired", intentId }, "the service no longer lists it");
  return true;
}

/** A list without the active key does not show all keys, and proves nothing about a key that it lacks. */
async function isCompleteList(deps: RotationDeps, listed: readonly ServiceKey[] | undefined): Promise<boolean> {
  const active = activeKey((await deps.ledger.read()).ledger)?.apiKeyId;
  return active !== undefined && listed?.some(({ apiKeyId }) => apiKeyId === active) === true;
}
