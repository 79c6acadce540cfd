// Decides what a rotation does next. Pure: what is known of the keys, the policy and the clock come in, steps come out.

import type { Ledger, LedgerKey } from "./ledger.ts";
import type { RotationJob, Sink } from "./policy.ts";

/** After this many failures in a row only a person makes the rotation create again. */
export const FAILED_ATTEMPTS_MAX = 5;

/** The service may show a key in its list a moment after it made it; later than this, one that is not there was not made. */
const UNLISTED_MS_MAX = 60 * 60 * 1000;

const DAY_MS = 24 * 60 * 60 * 1000;

export type Step = {
  readonly reason: string;
} & (
  | { readonly kind: "create" }
  /** A create whose answer nobody has. */
  | { readonly kind: "lose"; readonly key: LedgerKey }
  | { readonly kind: "verify"; readonly key: LedgerKey }
  | { readonly kind: "deliver"; readonly key: LedgerKey; readonly sinks: readonly Sink[] }
  | { readonly kind: "promote"; readonly key: LedgerKey }
  /** A pending key that will never be used. */
  | { readonly kind: "abandon"; readonly key: LedgerKey }
  /** Its use is looked at first, where the service tells. */
  | { readonly kind: "release"; readonly key: LedgerKey }
  | { readonly kind: "delete"; readonly key: LedgerKey }
  /** Somebody may have removed it at the service. */
  | { readonly kind: "recheck"; readonly key: LedgerKey }
  | { readonly kind: "search"; readonly key: LedgerKey; readonly giveUp: boolean }
);

export type Wish = {
  /** When a person asked for a fresh key, due or not. A key that is younger has fulfilled it. */
  readonly freshSince?: Date;
};

export type Plan = {
  /** What leads to a key in use; one at a time, as each depends on the one before. */
  readonly next: Step | undefined;
  /** Why there is nothing to do, or nothing that may be done. */
  readonly idle: string | undefined;
  readonly needsAttention: boolean;
  /** What the keys of the past need; each stands alone. */
  readonly cleanup: readonly Step[];
};

export function planRotation(job: RotationJob, ledger: Ledger, now: Date, wish: Wish = {}): Plan {
  const needsAttention = ledger.failedAttempts >= FAILED_ATTEMPTS_MAX && wish.freshSince === undefined;
  const next = nextStep(job, ledger, now, wish);
  const held = next?.kind === "create" && needsAttention;
  return {
    next: held ? undefined : next,
    idle: held ? attentionText(ledger) : next ? undefined : idleText(job, ledger, now),
    needsAttention,
    cleanup: cleanupSteps(job, ledger, now),
  };
}

/** A name for a sink that stays the same while what it does stays the same. */
export function sinkId(sink: Sink): string {
  return sink.kind === "file" ? `file ${sink.path}` : `command ${JSON.stringify(sink.command)}`;
}

function nextStep(job: RotationJob, ledger: Ledger, now: Date, wish: Wish): Step | undefined {
  const pending = ledger.keys.find(({ state }) => state === "pending");
  const wanted = ledger.keys.find(({ intentId, state }) => intentId === ledger.rollbackTo && state === "draining");
  if (pending && wanted && pending.step !== "intent") {
    return { kind: "abandon", key: pending, reason: "the previous key was asked for" };
  }
  if (pending) return pendingStep(job, ledger, pending, wish);
  if (wanted) {
    return sinksLeft(job, wanted)
      ? { kind: "deliver", key: wanted, sinks: missingSinks(job, wanted), reason: "the previous key was asked for" }
      : { kind: "promote", key: wanted, reason: "the previous key was asked for, and every sink has it" };
  }

  const active = ledger.keys.find(({ state }) => state === "active");
  const due = dueReason(job, active, now, wish);
  if (due !== undefined) return { kind: "create", reason: due };
  return active && sinksLeft(job, active)
    ? { kind: "deliver", key: active, sinks: missingSinks(job, active), reason: "a sink does not have the key in use" }
    : undefined;
}

function pendingStep(job: RotationJob, ledger: Ledger, key: LedgerKey, wish: Wish): Step {
  if (key.step === "intent") {
    return { kind: "lose", key, reason: "the create was begun, and its answer is not known" };
  }
  if (key.step === "stored") {
    const givenUp = wish.freshSince !== undefined && ledger.failedAttempts > 0 && key.requestedAt < wish.freshSince;
    return givenUp
      ? { kind: "abandon", key, reason: "a fresh key was asked for, and this one was not accepted" }
      : { kind: "verify", key, reason: "the key is stored and was not tried yet" };
  }
  return sinksLeft(job, key)
    ? { kind: "deliver", key, sinks: missingSinks(job, key), reason: "the key works and not every sink has it" }
    : { kind: "promote", key, reason: "the key works and every sink has it" };
}

function dueReason(job: RotationJob, active: LedgerKey | undefined, now: Date, wish: Wish): string | undefined {
  if (!active?.activeSince) return "there is no active key";
  if (wish.freshSince && active.activeSince < wish.freshSince) return "a fresh key was asked for";
  const ageDays = daysBetween(active.requestedAt, now);
  return ageDays >= job.maxAgeDays
    ? `the active key is ${Math.floor(ageDays)} days old, of at most ${job.maxAgeDays}`
    : undefined;
}

function missingSinks(job: RotationJob, key: LedgerKey): Sink[] {
  return job.deliver.filter((sink) => !key.deliveredTo.includes(sinkId(sink)));
}

function sinksLeft(job: RotationJob, key: LedgerKey): boolean {
  return missingSinks(job, key).length > 0;
}

/** Never for the key in use: it is not draining. */
function cleanupSteps(job: RotationJob, ledger: Ledger, now: Date): Step[] {
  const inUse = ledger.keys.some(({ state }) => state === "active");
  return ledger.keys.flatMap((key): Step[] => {
    if (key.state === "orphan") return orphanSteps(job, key, now);
    // While nothing is in use, and while a key may be wanted back, the old ones are all there is.
    if (key.state !== "draining" || !inUse || key.intentId === ledger.rollbackTo) return [];
    if (key.dueForRemovalAt) return [removalStep(job, key)];
    const restedDays = key.drainingSince ? daysBetween(key.drainingSince, now) : 0;
    if (restedDays < job.graceDays) return [];
    return [
      {
        kind: "release",
        key,
        reason: `it was replaced ${Math.floor(restedDays)} days ago, of ${job.graceDays} of grace`,
      },
    ];
  });
}

/** A key that a sink still holds is in use there, whatever its age. */
function removalStep(job: RotationJob, key: LedgerKey): Step {
  return job.retire === "delete" && key.deliveredTo.length === 0
    ? { kind: "delete", key, reason: "it is due for removal" }
    : { kind: "recheck", key, reason: "it is due for removal" };
}

function orphanSteps(job: RotationJob, key: LedgerKey, now: Date): Step[] {
  if (key.apiKeyId === undefined) {
    // Without the id in its comment nobody can tell it from a key that somebody uses.
    if (!key.comment.includes(key.intentId)) return [];
    const giveUp = now.getTime() - key.requestedAt.getTime() > UNLISTED_MS_MAX;
    return [{ kind: "search", key, giveUp, reason: "it may exist: the answer to its create was lost" }];
  }
  return [{ kind: job.retire === "delete" ? "delete" : "recheck", key, reason: "nobody has its secret" }];
}

function idleText(job: RotationJob, ledger: Ledger, now: Date): string {
  const active = ledger.keys.find(({ state }) => state === "active");
  const ageDays = active ? daysBetween(active.requestedAt, now) : 0;
  return `the active key is ${Math.floor(ageDays)} days old; due in ${Math.ceil(job.maxAgeDays - ageDays)} days`;
}

function attentionText({ failedAttempts, lastError }: Ledger): string {
  return `needs attention: ${failedAttempts} attempts failed, the last with: ${lastError ?? "unknown"}; nothing is created until rotate --now`;
}

function daysBetween(from: Date, to: Date): number {
  return (to.getTime() - from.getTime()) / DAY_MS;
}
