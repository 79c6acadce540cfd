// Decides what a rotation does: the next step towards an active key, and the cleanup of replaced and lost keys. Pure.

import type { RotationConfig, Sink } from "../config/rotations.ts";
import { counted } from "../show/format.ts";
import { DAY_MS, HOUR_MS } from "../usage/days.ts";

export type LedgerKey = {
  /** Recorded before the request that creates the key, and a part of the key's comment. */
  readonly intentId: string;
  readonly apiKeyId: string | null;
  readonly state: "pending" | "active" | "draining" | "retired" | "orphan";
  /** How far the making of a pending key has come. */
  readonly step:
    | "intent" // the create may have been sent; nothing is known about the key
    | "stored" // the key exists, and its secret is sealed in the ledger
    | "verified" // a call with the key succeeded
    | null; // the key is not pending
  readonly requestedAt: Date;
  readonly expiresAt: Date | null;
  readonly activeSince: Date | null;
  /** When a rollback made the key active again. */
  readonly rollbackAt: Date | null;
  readonly drainingSince: Date | null;
  readonly dueForRemovalAt: Date | null;
  readonly scopesAsked: readonly string[];
  /** Empty if the service did not say. */
  readonly scopesGranted: readonly string[];
  /** The sinkIds of the sinks that hold the key. A sink holds one key at a time. */
  readonly heldBy: readonly string[];
  readonly note: string | null;
};

export type RotationState = {
  /** How many attempts have failed since the last success. */
  readonly failedAttempts: number;
  readonly lastError: string | null;
  /** The intentId of the key that a rollback is to make active again. */
  readonly rollbackTo: string | null;
  /** All but the retired keys, oldest first. */
  readonly keys: readonly LedgerKey[];
};

export function activeKey({ keys }: RotationState): LedgerKey | undefined {
  return keys.find(({ state }) => state === "active");
}

export function sinkId(sink: Sink): string {
  return "file" in sink ? `file ${sink.file}` : `command ${JSON.stringify(sink.command)}`;
}

/** After this many failures in a row no key is created until a person asks for one. */
export const FAILED_ATTEMPTS_MAX = 5;

/**
 * Each step towards an active key, with the changes that it writes to the ledger (db/keys/ledger.ts). A step that fails writes `failed`.
 * - `create` → `intent`, then `stored`, `not-created` or `orphan`
 * - `mark-orphan` → `orphan`, `failed`: the answer to the request that creates the key was lost
 * - `verify` → `verified`
 * - `discard` → `discarded`: the pending key will never be used
 * - `deliver` → `delivered`, for each sink
 * - `promote` → `active`
 * - `rollback` → `rollback`: verifies the previous key, which will be active again; the next steps deliver and promote it
 * - `recover` → `recovered`: nothing is left to do; the count of failed attempts is reset
 */
export type RotationStep = { readonly reason: string } & (
  | { readonly kind: "deliver"; readonly key: LedgerKey; readonly sinks: readonly Sink[] }
  | { readonly kind: "mark-orphan" | "verify" | "promote" | "discard" | "rollback"; readonly key: LedgerKey }
  | { readonly kind: "create" | "recover" }
);

/** What a person asked for. A key that becomes active after `at` fulfils the request. */
export type RotationRequest = { readonly wants: "fresh" | "previous"; readonly at: Date };

/** What the service and the delivered files show of the active key. */
export type Inspection = {
  /** Why the key no longer works. */
  readonly refusal?: string | undefined;
  /** The sinks that no longer hold the key, by sinkId, with what is wrong. */
  readonly stale?: ReadonlyMap<string, string>;
};

/** Returns the next step, why there is nothing to do (`idle`), or why the next step may not be taken (`blocked`). */
export function planRotation(
  job: RotationConfig,
  ledger: RotationState,
  now: Date,
  request?: RotationRequest,
  inspection?: Inspection,
) {
  const next = nextStep(job, ledger, now, request, inspection);
  if (next?.kind === "create" && request?.wants !== "fresh" && needsAttention(ledger.failedAttempts)) {
    const failed = `${ledger.failedAttempts} attempts failed, the last with: ${ledger.lastError ?? "unknown"}`;
    return { blocked: `needs attention: ${failed}; nothing is created until rotate --now` };
  }
  if (next) return { next };
  if (isRollbackDue(ledger, request)) return { blocked: "there is no previous key to roll back to" };
  const active = activeKey(ledger);
  const ageDays = active ? ageInDays(active, now) : 0;
  const dueInDays = Math.ceil(job.maxAgeDays - ageDays);
  return { idle: `the active key is ${counted(Math.floor(ageDays), "day")} old; due in ${counted(dueInDays, "day")}` };
}

export function needsAttention(failedAttempts: number): boolean {
  return failedAttempts >= FAILED_ATTEMPTS_MAX;
}

export function attemptsText(state: Pick<RotationState, "failedAttempts" | "lastError">): string {
  const { failedAttempts, lastError } = state;
  const attention = needsAttention(failedAttempts) ? "needs attention: nothing is created until rotate --now; " : "";
  return `${attention}${counted(failedAttempts, "failed attempt")}, the last: ${lastError}`;
}

export function nextStep(
  job: RotationConfig,
  ledger: RotationState,
  now: Date,
  request?: RotationRequest,
  { refusal, stale }: Inspection = {},
): RotationStep | undefined {
  const target = ledger.keys.find(({ intentId, state }) => intentId === ledger.rollbackTo && state === "draining");
  const pending = ledger.keys.find(({ state }) => state === "pending");
  if (target && request?.wants !== "fresh") return rollbackStep(job, target, pending);
  if (isRollbackDue(ledger, request)) {
    const previous = previousKey(ledger);
    return previous && { kind: "rollback", key: previous, reason: "the previous key was asked for" };
  }
  if (pending) return pendingStep(job, pending, ledger.failedAttempts > 0, request);
  const active = activeKey(ledger);
  const createReason = dueReason(job, now, active, request, refusal);
  if (createReason !== undefined) return { kind: "create", reason: createReason };
  const missing = active ? missingSinks(job, active, stale) : [];
  if (active && missing.length > 0) {
    const reason = ["a sink does not have the key in use", ...(stale?.values() ?? [])].join(": ");
    return { kind: "deliver", key: active, sinks: missing, reason };
  }
  return ledger.failedAttempts > 0 ? { kind: "recover", reason: "nothing is left to do" } : undefined;
}

function rollbackStep(job: RotationConfig, target: LedgerKey, pending: LedgerKey | undefined): RotationStep {
  const reason = "the previous key was asked for";
  if (pending) return pending.step === "intent" ? markOrphanStep(pending) : { kind: "discard", key: pending, reason };
  return deliverOrPromote(job, target, reason);
}

function pendingStep(job: RotationConfig, key: LedgerKey, hasFailed: boolean, request?: RotationRequest): RotationStep {
  if (key.step === "intent") return markOrphanStep(key);
  if (key.step !== "stored") return deliverOrPromote(job, key, "the key works");
  const isTooOld = request?.wants === "fresh" && key.requestedAt < request.at;
  return isTooOld && hasFailed
    ? { kind: "discard", key, reason: "a fresh key was asked for, and this one was not accepted" }
    : { kind: "verify", key, reason: "the key is stored and was not verified yet" };
}

function deliverOrPromote(job: RotationConfig, key: LedgerKey, reason: string): RotationStep {
  const sinks = missingSinks(job, key);
  return sinks.length > 0
    ? { kind: "deliver", key, sinks, reason: `${reason} and not every sink has it` }
    : { kind: "promote", key, reason: `${reason} and every sink has it` };
}

function markOrphanStep(key: LedgerKey): RotationStep {
  return { kind: "mark-orphan", key, reason: "the create may have been sent, and its answer is not known" };
}

function isRollbackDue(ledger: RotationState, request?: RotationRequest): boolean {
  const rollbackAt = activeKey(ledger)?.rollbackAt;
  return request?.wants === "previous" && (!rollbackAt || rollbackAt < request.at);
}

/** The previous key is always older than the active one: a second rollback goes one key further back, never forward again. */
function previousKey(ledger: RotationState): LedgerKey | undefined {
  const active = activeKey(ledger);
  const isOlder = ({ requestedAt }: LedgerKey) => active !== undefined && requestedAt < active.requestedAt;
  return ledger.keys.findLast((key) => key.state === "draining" && key.activeSince !== null && isOlder(key));
}

function dueReason(job: RotationConfig, now: Date, active?: LedgerKey, request?: RotationRequest, refusal?: string) {
  if (!active?.activeSince) return "there is no active key";
  if (refusal !== undefined) return refusal;
  if (request?.wants === "fresh" && active.activeSince < request.at) return "a fresh key was asked for";
  const ageDays = ageInDays(active, now);
  if (ageDays >= job.maxAgeDays)
    return `the active key is ${counted(Math.floor(ageDays), "day")} old, of at most ${job.maxAgeDays}`;
  // The grace period is the time that programs have to change over to the next key.
  const leftDays = active.expiresAt ? daysBetween(now, active.expiresAt) : Number.POSITIVE_INFINITY;
  return leftDays <= job.graceDays ? `the active key expires in ${counted(Math.floor(leftDays), "day")}` : undefined;
}

/** The age starts again at a rollback: otherwise the old key would be due for replacement at once. */
function ageInDays(key: LedgerKey, now: Date): number {
  return daysBetween(key.rollbackAt ?? key.requestedAt, now);
}

function missingSinks(job: RotationConfig, key: LedgerKey, stale: Inspection["stale"] = new Map()): Sink[] {
  return job.deliver.filter((sink) => !key.heldBy.includes(sinkId(sink)) || stale.has(sinkId(sink)));
}

function daysBetween(from: Date, to: Date): number {
  return (Number(to) - Number(from)) / DAY_MS;
}

// The cleanup of replaced keys, and of keys whose secret was lost.

/** The service may list a new key a moment late. If it does not list a key after this time, the key was not made. */
const UNLISTED_MS_MAX = HOUR_MS;

/**
 * Each step of the cleanup, with the change that it writes to the ledger, if any.
 * - `mark-due` → `due-for-removal`, unless the service shows that the key is still used. Planned once the grace period is over
 * - `delete` → `retired`: the key is gone at the service; or `in-use` or `kept`: it must stay. Planned only if `retire` is "delete"
 * - `recheck` → `retired`, if somebody has deleted the key at the service
 * - `search` → `found`: the service lists the orphan; or `retired`: with `giveUp`, an orphan that is not listed counts as not made
 */
export type CleanupStep = { readonly reason: string; readonly key: LedgerKey } & (
  | { readonly kind: "delete" | "mark-due" | "recheck" }
  | { readonly kind: "search"; readonly giveUp: boolean }
);

/** Skips active and pending keys. If the steps will be taken, `now` must be the earliest of all clocks: one that is ahead would end a grace early. */
export function cleanupSteps(job: RotationConfig, ledger: RotationState, now: Date): CleanupStep[] {
  const hasActive = activeKey(ledger) !== undefined;
  return ledger.keys.flatMap((key): CleanupStep[] => {
    if (key.state === "orphan") return [orphanStep(job, key, now)];
    // Without an active key a draining one may be the only one that works, and a rollback needs its target.
    if (key.state !== "draining" || !hasActive || key.intentId === ledger.rollbackTo) return [];
    if (key.dueForRemovalAt) return [removalStep(job, key, "it is due for removal")];
    const replacedDays = key.drainingSince ? daysBetween(key.drainingSince, now) : 0;
    if (replacedDays < job.graceDays) return [];
    const reason = `it was replaced ${counted(Math.floor(replacedDays), "day")} ago, and its grace is ${counted(job.graceDays, "day")}`;
    return [{ kind: "mark-due", key, reason }];
  });
}

/** A key that a sink still holds is never deleted, because whoever reads the sink uses the key. */
function removalStep(job: RotationConfig, key: LedgerKey, reason: string): CleanupStep {
  const isHeld = job.deliver.some((sink) => key.heldBy.includes(sinkId(sink)));
  return { kind: job.retire === "delete" && !isHeld ? "delete" : "recheck", key, reason };
}

function orphanStep(job: RotationConfig, key: LedgerKey, now: Date): CleanupStep {
  if (key.apiKeyId !== null) return removalStep(job, key, "nobody has its secret");
  const giveUp = Number(now) - Number(key.requestedAt) > UNLISTED_MS_MAX;
  return { kind: "search", key, giveUp, reason: "it may exist: the answer to its create was lost" };
}
