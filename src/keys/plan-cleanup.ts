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
  return { kind: job.retire !== "keep" && !isHeld ? "delete" : "recheck", key, reason: "it is due for removal" };
}

function orphanSteps(job: RotationJob, key: LedgerKey, now: Date): CleanupStep[] {
  if (key.apiKeyId !== undefined) {
    return [{ kind: job.retire === "keep" ? "recheck" : "delete", key, reason: "nobody has its secret" }];
  }
  // Without the id in its comment nobody can tell it from a key that somebody uses.
  if (!key.comment.includes(key.intentId)) return [];
  const giveUp = now.getTime() - key.requestedAt.getTime() > UNLISTED_MS_MAX;
  return [{ kind: "search", key, giveUp, reason: "it may exist: the answer to its create was lost" }];
}

/** The clocks used to compute ages, read at one moment. */
export type Clocks = {
  /** The clock that set the times in the ledger. */
  readonly database: Date;
  /** This machine's clock. */
  readonly machine: Date;
  /** Undefined if the service does not tell its time. */
  readonly service: Date | undefined;
};

/** Far more than healthy clocks differ by, and negligible beside an age in days. */
const CLOCK_SKEW_MS_MAX = 5 * 60 * 1000;

/** Why ages by the database's clock can't be trusted now; undefined if they can. */
export function clockDoubt({ database, machine, service }: Clocks): string | undefined {
  const whose = service ? "the service's" : "this machine's";
  const skewMs = database.getTime() - (service ?? machine).getTime();
  if (Math.abs(skewMs) <= CLOCK_SKEW_MS_MAX) return undefined;
  const direction = skewMs > 0 ? "ahead of" : "behind";
  return `the database's clock is ${durationText(Math.abs(skewMs))} ${direction} ${whose}: no key is retired until they agree`;
}

/** Why the grace of a replaced key is not over by every clock; undefined if it is over. */
export function graceLeft(job: RotationJob, key: LedgerKey, ledger: Ledger, clocks: Clocks): string | undefined {
  const rested = restedMs(key, ledger, clocks);
  if (rested >= job.graceDays * DAY_MS - CLOCK_SKEW_MS_MAX) return undefined;
  const days = Math.max(0, Math.floor(rested / DAY_MS));
  return `not every clock says that its grace is over: by one it was replaced ${days} days ago, of ${job.graceDays} of grace`;
}

/**
 * How long a key has been replaced for certain: by the clock that gives the shortest time, and no longer than its successor has
 * existed at the service, whose clock is independent of ours.
 */
function restedMs(key: LedgerKey, { keys }: Ledger, { database, machine, service }: Clocks): number {
  const since = key.drainingSince;
  if (!since) return 0;
  const nowMs = Math.min(database.getTime(), machine.getTime(), service?.getTime() ?? Number.POSITIVE_INFINITY);
  const [successor] = keys
    .filter(({ activeSince }) => activeSince !== undefined && activeSince >= since)
    .sort((a, b) => Number(a.activeSince) - Number(b.activeSince));
  const bySuccessorMs = successor?.createdAt ? nowMs - successor.createdAt.getTime() : Number.POSITIVE_INFINITY;
  return Math.min(nowMs - since.getTime(), bySuccessorMs);
}

function durationText(ms: number): string {
  const hours = ms / (60 * 60 * 1000);
  if (hours < 2) return `${Math.round(ms / 60_000)} minutes`;
  return hours < 48 ? `${Math.round(hours)} hours` : `${Math.round(hours / 24)} days`;
}
