// Decides what a rotation does: the next step towards an active key, and what the replaced and lost keys need. Pure: the
// ledger, the policy and the clock come in, steps come out.

import { DAY_MS } from "../usage/days.ts";
import { activeKey, type Ledger, type LedgerKey } from "./ledger.ts";
import { type RotationJob, type Sink, sinkId } from "./policy.ts";

/** After this many failures in a row nothing is created until a person asks for it. */
export const FAILED_ATTEMPTS_MAX = 5;

/** Exactly one of `next`, `idle` and `blocked` is set. */
export type RotationPlan = {
  /** One step at a time, because each depends on the one before. */
  readonly next?: RotationStep;
  /** Why there is nothing to do. */
  readonly idle?: string;
  /** Why the next step may not be done. */
  readonly blocked?: string;
  /** These steps do not depend on each other. */
  readonly cleanup: readonly CleanupStep[];
};

/** A step towards an active key. */
export type RotationStep = { readonly reason: string } & (
  | { readonly kind: "create" }
  /** The answer to its create was lost. */
  | { readonly kind: "mark-orphan"; readonly key: LedgerKey }
  | { readonly kind: "verify"; readonly key: LedgerKey }
  | { readonly kind: "deliver"; readonly key: LedgerKey; readonly sinks: readonly Sink[] }
  | { readonly kind: "promote"; readonly key: LedgerKey }
  /** A pending key that will never be used. */
  | { readonly kind: "abandon"; readonly key: LedgerKey }
  /** The previous key is to be put back; it is verified first. */
  | { readonly kind: "restore"; readonly key: LedgerKey }
  /** Nothing is left to do: resets the count of failed attempts. */
  | { readonly kind: "recover" }
);

/** What a person asked for, and when. A key that becomes active after that time fulfils the request. */
export type RotationRequest = {
  /** A fresh key, due or not. */
  readonly freshRequestedAt?: Date;
  /** The previous key, put back. */
  readonly previousRequestedAt?: Date;
};

/** What is known about the active key besides the ledger. */
export type Inspection = {
  readonly intentId: string;
  /** Why the key no longer works; undefined if it works or if that is not known. */
  readonly refusal: string | undefined;
  /** The sinks that no longer hold the key, by sinkId, with what is wrong. */
  readonly stale: ReadonlyMap<string, string>;
};

export function planRotation(
  job: RotationJob,
  ledger: Ledger,
  now: Date,
  request: RotationRequest = {},
  inspection?: Inspection,
): RotationPlan {
  const cleanup = cleanupSteps(job, ledger, now);
  const next = nextStep(job, ledger, now, request, inspection);
  const blocked = blockedText(ledger, next, request);
  if (blocked !== undefined) return { blocked, cleanup };
  return next ? { next, cleanup } : { idle: idleText(job, ledger, now), cleanup };
}

export function needsAttention(failedAttempts: number): boolean {
  return failedAttempts >= FAILED_ATTEMPTS_MAX;
}

function blockedText(ledger: Ledger, next: RotationStep | undefined, request: RotationRequest): string | undefined {
  if (wantsPrevious(ledger, request) && next === undefined) return "there is no previous key to put back";
  if (next?.kind !== "create" || request.freshRequestedAt || !needsAttention(ledger.failedAttempts)) return undefined;
  return `needs attention: ${ledger.failedAttempts} attempts failed, the last with: ${ledger.lastError ?? "unknown"}; nothing is created until rotate --now`;
}

function idleText(job: RotationJob, ledger: Ledger, now: Date): string {
  const active = activeKey(ledger);
  const ageDays = active ? daysInService(active, now) : 0;
  return `the active key is ${Math.floor(ageDays)} days old; due in ${Math.ceil(job.maxAgeDays - ageDays)} days`;
}

export function nextStep(
  job: RotationJob,
  ledger: Ledger,
  now: Date,
  request: RotationRequest,
  inspection?: Inspection,
): RotationStep | undefined {
  const target = request.freshRequestedAt ? undefined : rollbackTarget(ledger);
  const pending = ledger.keys.find(({ state }) => state === "pending");
  if (target) return rollbackStep(job, target, pending);
  if (wantsPrevious(ledger, request)) {
    const previous = previousKey(ledger);
    return previous && { kind: "restore", key: previous, reason: "the previous key was asked for" };
  }
  if (pending) return pendingStep(job, ledger, pending, request);
  const active = activeKey(ledger);
  const activeInspection = inspection?.intentId === active?.intentId ? inspection : undefined;
  const due = dueReason(job, active, now, request, activeInspection?.refusal);
  if (due !== undefined) return { kind: "create", reason: due };
  if (active) {
    const missing = missingSinks(job, active);
    const reason = "a sink does not have the key in use";
    if (missing.length > 0) return { kind: "deliver", key: active, sinks: missing, reason };
    const stale = job.deliver.filter((sink) => activeInspection?.stale.has(sinkId(sink)));
    if (activeInspection && stale.length > 0) {
      return { kind: "deliver", key: active, sinks: stale, reason: [...activeInspection.stale.values()].join("; ") };
    }
  }
  return ledger.failedAttempts > 0 ? { kind: "recover", reason: "nothing is left to do" } : undefined;
}

/** The draining key that a person asked to have back. */
function rollbackTarget({ keys, rollbackTo }: Ledger): LedgerKey | undefined {
  return keys.find(({ intentId, state }) => intentId === rollbackTo && state === "draining");
}

function rollbackStep(job: RotationJob, target: LedgerKey, pending: LedgerKey | undefined): RotationStep {
  const reason = "the previous key was asked for";
  if (pending) return pending.step === "intent" ? markOrphanStep(pending) : { kind: "abandon", key: pending, reason };
  const sinks = missingSinks(job, target);
  return sinks.length > 0
    ? { kind: "deliver", key: target, sinks, reason }
    : { kind: "promote", key: target, reason: `${reason}, and every sink has it` };
}

function pendingStep(job: RotationJob, ledger: Ledger, key: LedgerKey, request: RotationRequest): RotationStep {
  if (key.step === "intent") return markOrphanStep(key);
  if (key.step === "stored") {
    const { freshRequestedAt } = request;
    const isFresh = freshRequestedAt === undefined || key.requestedAt >= freshRequestedAt;
    return !isFresh && ledger.failedAttempts > 0
      ? { kind: "abandon", key, reason: "a fresh key was asked for, and this one was not accepted" }
      : { kind: "verify", key, reason: "the key is stored and was not verified yet" };
  }
  const sinks = missingSinks(job, key);
  return sinks.length > 0
    ? { kind: "deliver", key, sinks, reason: "the key works and not every sink has it" }
    : { kind: "promote", key, reason: "the key works and every sink has it" };
}

function markOrphanStep(key: LedgerKey): RotationStep {
  return { kind: "mark-orphan", key, reason: "the create may have been sent, and its answer is not known" };
}

function wantsPrevious(ledger: Ledger, { previousRequestedAt }: RotationRequest): boolean {
  const putBackAt = activeKey(ledger)?.putBackAt;
  return previousRequestedAt !== undefined && (putBackAt === undefined || putBackAt < previousRequestedAt);
}

/** Always older than the active key: a second rollback goes one key further back, never forward again. */
function previousKey(ledger: Ledger): LedgerKey | undefined {
  const active = activeKey(ledger);
  return ledger.keys.findLast(
    ({ state, activeSince, requestedAt }) =>
      state === "draining" && activeSince !== undefined && active !== undefined && requestedAt < active.requestedAt,
  );
}

function dueReason(
  job: RotationJob,
  active: LedgerKey | undefined,
  now: Date,
  request: RotationRequest,
  refusal: string | undefined,
): string | undefined {
  if (!active?.activeSince) return "there is no active key";
  if (refusal !== undefined) return refusal;
  if (request.freshRequestedAt && active.activeSince < request.freshRequestedAt) return "a fresh key was asked for";
  const ageDays = daysInService(active, now);
  if (ageDays >= job.maxAgeDays)
    return `the active key is ${Math.floor(ageDays)} days old, of at most ${job.maxAgeDays}`;
  // The grace period is the time in which programs change over to the key's successor.
  const leftDays = active.expiresAt ? daysBetween(now, active.expiresAt) : Number.POSITIVE_INFINITY;
  return leftDays <= job.graceDays ? `the active key expires in ${Math.floor(leftDays)} days` : undefined;
}

/** Starts again at a rollback: otherwise the old key that was put back would be due for replacement at once. */
function daysInService(key: LedgerKey, now: Date): number {
  return daysBetween(key.putBackAt ?? key.requestedAt, now);
}

function missingSinks(job: RotationJob, key: LedgerKey): Sink[] {
  return job.deliver.filter((sink) => !key.deliveredTo.includes(sinkId(sink)));
}

function daysBetween(from: Date, to: Date): number {
  return (to.getTime() - from.getTime()) / DAY_MS;
}

// The cleanup: what happens to replaced keys, and to keys whose secret was lost.

/** The service may list a new key a moment late. A key that it does not list after this time was not made. */
const UNLISTED_MS_MAX = 60 * 60 * 1000;

export type CleanupStep = { readonly reason: string; readonly key: LedgerKey } & (
  | { readonly kind: "delete" }
  /** The grace period is over: mark the key due for removal, unless the service shows that it is still used. */
  | { readonly kind: "mark-due" }
  /** Somebody may have deleted it at the service. */
  | { readonly kind: "recheck" }
  /** Look for an orphan at the service, by its comment. With `giveUp`, one that is not listed counts as not made. */
  | { readonly kind: "search"; readonly giveUp: boolean }
);

/** No step is for an active or a pending key. */
export function cleanupSteps(job: RotationJob, ledger: Ledger, now: Date): CleanupStep[] {
  const isAnyInUse = activeKey(ledger) !== undefined;
  return ledger.keys.flatMap((key): CleanupStep[] => {
    if (key.state === "orphan") return orphanSteps(job, key, now);
    // Without an active key a draining one may be the only one that works, and a rollback needs its target.
    if (key.state !== "draining" || !isAnyInUse || key.intentId === ledger.rollbackTo) return [];
    return key.dueForRemovalAt ? [removalStep(job, key)] : graceSteps(job, key, now);
  });
}

function graceSteps(job: RotationJob, key: LedgerKey, now: Date): CleanupStep[] {
  const replacedMs = key.drainingSince ? now.getTime() - key.drainingSince.getTime() : 0;
  if (replacedMs < job.graceDays * DAY_MS) return [];
  const reason = `it was replaced ${Math.floor(replacedMs / DAY_MS)} days ago, and its grace is ${job.graceDays} days`;
  return [{ kind: "mark-due", key, reason }];
}

/** A key that a sink still holds is never deleted: whoever reads the sink uses it. */
function removalStep(job: RotationJob, key: LedgerKey): CleanupStep {
  const isHeld = job.deliver.some((sink) => key.deliveredTo.includes(sinkId(sink)));
  return { kind: job.retire !== "keep" && !isHeld ? "delete" : "recheck", key, reason: "it is due for removal" };
}

function orphanSteps(job: RotationJob, key: LedgerKey, now: Date): CleanupStep[] {
  if (key.apiKeyId !== undefined) {
    return [{ kind: job.retire === "keep" ? "recheck" : "delete", key, reason: "nobody has its secret" }];
  }
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
export function clockSkewText({ database, machine, service }: Clocks): string | undefined {
  const whose = service ? "the service's" : "this machine's";
  const skewMs = database.getTime() - (service ?? machine).getTime();
  if (Math.abs(skewMs) <= CLOCK_SKEW_MS_MAX) return undefined;
  return `the database's clock is over 5 minutes ${skewMs > 0 ? "ahead of" : "behind"} ${whose}: no key is retired until they agree`;
}
