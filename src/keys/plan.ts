// Decides what a rotation does. Pure: what is known of the keys, the policy and the clock come in, steps come out.

import { activeKey, type Ledger } from "./ledger.ts";
import { type CleanupStep, cleanupSteps } from "./plan-cleanup.ts";
import { daysInService, type Inspection, nextStep, type Step, type Wish, wantsPrevious } from "./plan-next.ts";
import type { RotationJob } from "./policy.ts";

/** After this many failures in a row only a person makes the rotation create again. */
export const FAILED_ATTEMPTS_MAX = 5;

export type Plan = {
  /** One at a time, as each depends on the one before. */
  readonly next: Step | undefined;
  /** Why there is nothing to do. */
  readonly idle: string | undefined;
  /** Why what should be done may not be done. */
  readonly blocked: string | undefined;
  /** Each stands alone. */
  readonly cleanup: readonly CleanupStep[];
};

export function planRotation(
  job: RotationJob,
  ledger: Ledger,
  now: Date,
  wish: Wish = {},
  inspection?: Inspection,
): Plan {
  const cleanup = cleanupSteps(job, ledger, now);
  const next = nextStep(job, ledger, now, wish, inspection);
  const blocked = blockedText(ledger, next, wish);
  if (blocked !== undefined) return { next: undefined, idle: undefined, blocked, cleanup };
  return { next, idle: next ? undefined : idleText(job, ledger, now), blocked, cleanup };
}

export function needsAttention(failedAttempts: number): boolean {
  return failedAttempts >= FAILED_ATTEMPTS_MAX;
}

function blockedText(ledger: Ledger, next: Step | undefined, wish: Wish): string | undefined {
  if (wantsPrevious(ledger, wish) && next === undefined) return "there is no previous key to put back";
  if (next?.kind !== "create" || wish.freshSince || !needsAttention(ledger.failedAttempts)) return undefined;
  return `needs attention: ${ledger.failedAttempts} attempts failed, the last with: ${ledger.lastError ?? "unknown"}; nothing is created until rotate --now`;
}

function idleText(job: RotationJob, ledger: Ledger, now: Date): string {
  const active = activeKey(ledger);
  const ageDays = active ? daysInService(active, now) : 0;
  return `the active key is ${Math.floor(ageDays)} days old; due in ${Math.ceil(job.maxAgeDays - ageDays)} days`;
}
