// Decides what the keys of the past need: those that were replaced, and those whose secret was lost. Pure.

import { activeKey, type Ledger, type LedgerKey } from "./ledger.ts";
import { type RotationJob, sinkId } from "./policy.ts";

/** The service may show a key in its list a moment after it made it; later than this, one that is not there was not made. */
const UNLISTED_MS_MAX = 60 * 60 * 1000;

const DAY_MS = 24 * 60 * 60 * 1000;

/** What a key of the past needs. */
export type CleanupStep = { readonly reason: string; readonly key: LedgerKey } & (
  | {
      /** Its use is looked at first, where the service tells. */
      readonly kind: "release";
    }
  | { readonly kind: "delete" }
  /** Somebody may have removed it at the service. */
  | { readonly kind: "recheck" }
  | { readonly kind: "search"; readonly giveUp: boolean }
);

/** Never for the key in use, nor for one on its way: neither is draining. */
export function cleanupSteps(job: RotationJob, ledger: Ledger, now: Date): CleanupStep[] {
  const isAnyInUse = activeKey(ledger) !== undefined;
  return ledger.keys.flatMap((key): CleanupStep[] => {
    if (key.state === "orphan") return orphanSteps(job, key, now);
    // While nothing is in use, and while a key may be wanted back, the old ones are all there is.
    if (key.state !== "draining" || !isAnyInUse || key.intentId === ledger.rollbackTo) return [];
    return key.dueForRemovalAt ? [removalStep(job, key)] : graceSteps(job, key, now);
  });
}

function graceSteps(job: RotationJob, key: LedgerKey, now: Date): CleanupStep[] {
  const restedMs = key.drainingSince ? now.getTime() - key.drainingSince.getTime() : 0;
  if (restedMs < job.graceDays * DAY_MS) return [];
  const reason = `it was replaced ${Math.floor(restedMs / DAY_MS)} days ago, of ${job.graceDays} of grace`;
  return [{ kind: "release", key, reason }];
}

/** A key that a sink still holds is in use there, whatever its age. */
function removalStep(job: RotationJob, key: LedgerKey): CleanupStep {
  const isHeld = job.deliver.some((sink) => key.deliveredTo.includes(sinkId(sink)));
  return { kind: job.retire === "delete" && !isHeld ? "delete" : "recheck", key, reason: "it is due for removal" };
}

function orphanSteps(job: RotationJob, key: LedgerKey, now: Date): CleanupStep[] {
  if (key.apiKeyId !== undefined) {
    return [{ kind: job.retire === "delete" ? "delete" : "recheck", key, reason: "nobody has its secret" }];
  }
  // Without the id in its comment nobody can tell it from a key that somebody uses.
  if (!key.comment.includes(key.intentId)) return [];
  const giveUp = now.getTime() - key.requestedAt.getTime() > UNLISTED_MS_MAX;
  return [{ kind: "search", key, giveUp, reason: "it may exist: the answer to its create was lost" }];
}
