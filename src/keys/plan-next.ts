// Decides the next step on the way to a key in use: one at a time, as each depends on the one before. Pure.

import { activeKey, type Ledger, type LedgerKey } from "./ledger.ts";
import { type RotationJob, type Sink, sinkId } from "./policy.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** A step on the way to a key in use. */
export type Step = { readonly reason: string } & (
  | { readonly kind: "create" }
  /** A create whose answer nobody has. */
  | { readonly kind: "lose"; readonly key: LedgerKey }
  | { readonly kind: "verify"; readonly key: LedgerKey }
  | { readonly kind: "deliver"; readonly key: LedgerKey; readonly sinks: readonly Sink[] }
  | { readonly kind: "promote"; readonly key: LedgerKey }
  /** A pending key that will never be used. */
  | { readonly kind: "abandon"; readonly key: LedgerKey }
  /** The previous key is to be put back; it is tried first. */
  | { readonly kind: "recall"; readonly key: LedgerKey }
  /** Earlier failures are over. */
  | { readonly kind: "settle" }
);

/** What a person asked for, by when: what came after has fulfilled it. */
export type Wish = {
  /** A fresh key, due or not. */
  readonly freshSince?: Date;
  /** The previous key. */
  readonly previousSince?: Date;
};

/** What is known about the key in use besides the ledger. */
export type Inspection = {
  readonly intentId: string;
  /** Why the key no longer works; undefined if it works, and if that is not known. */
  readonly refusal: string | undefined;
  /** The sinks that no longer hold the key, by sinkId, with what is wrong. */
  readonly stale: ReadonlyMap<string, string>;
};

export function nextStep(
  job: RotationJob,
  ledger: Ledger,
  now: Date,
  wish: Wish,
  inspection?: Inspection,
): Step | undefined {
  const wanted = wish.freshSince ? undefined : wantedKey(ledger);
  const pending = ledger.keys.find(({ state }) => state === "pending");
  if (wanted) return rollbackStep(job, wanted, pending);
  if (wantsPrevious(ledger, wish)) {
    const previous = previousKey(ledger);
    return previous && { kind: "recall", key: previous, reason: "the previous key was asked for" };
  }
  if (pending) return pendingStep(job, ledger, pending, wish);
  const active = activeKey(ledger);
  const known = inspection?.intentId === active?.intentId ? inspection : undefined;
  const due = dueReason(job, active, now, wish, known?.refusal);
  if (due !== undefined) return { kind: "create", reason: due };
  if (active && sinksLeft(job, active)) {
    const reason = "a sink does not have the key in use";
    return { kind: "deliver", key: active, sinks: missingSinks(job, active), reason };
  }
  const stale = job.deliver.filter((sink) => known?.stale.has(sinkId(sink)));
  if (active && known && stale.length > 0) {
    return { kind: "deliver", key: active, sinks: stale, reason: [...known.stale.values()].join("; ") };
  }
  return ledger.failedAttempts > 0 ? { kind: "settle", reason: "nothing is left to do" } : undefined;
}

/** The key that a person asked to have back, while it is not. */
function wantedKey({ keys, rollbackTo }: Ledger): LedgerKey | undefined {
  return keys.find(({ intentId, state }) => intentId === rollbackTo && state === "draining");
}

function rollbackStep(job: RotationJob, wanted: LedgerKey, pending: LedgerKey | undefined): Step {
  const reason = "the previous key was asked for";
  if (pending) return pending.step === "intent" ? loseStep(pending) : { kind: "abandon", key: pending, reason };
  return sinksLeft(job, wanted)
    ? { kind: "deliver", key: wanted, sinks: missingSinks(job, wanted), reason }
    : { kind: "promote", key: wanted, reason: `${reason}, and every sink has it` };
}

function pendingStep(job: RotationJob, ledger: Ledger, key: LedgerKey, wish: Wish): Step {
  if (key.step === "intent") return loseStep(key);
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

function loseStep(key: LedgerKey): Step {
  return { kind: "lose", key, reason: "the create was begun, and its answer is not known" };
}

export function wantsPrevious(ledger: Ledger, { previousSince }: Wish): boolean {
  const putBackAt = activeKey(ledger)?.putBackAt;
  return previousSince !== undefined && (putBackAt === undefined || putBackAt < previousSince);
}

/** Never a newer one: asking twice goes back twice, and not to and fro. */
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
  wish: Wish,
  refusal: string | undefined,
): string | undefined {
  if (!active?.activeSince) return "there is no active key";
  if (refusal !== undefined) return refusal;
  if (wish.freshSince && active.activeSince < wish.freshSince) return "a fresh key was asked for";
  const ageDays = daysInService(active, now);
  if (ageDays >= job.maxAgeDays)
    return `the active key is ${Math.floor(ageDays)} days old, of at most ${job.maxAgeDays}`;
  // Its successor needs the grace to take over in.
  const leftDays = active.expiresAt ? daysBetween(now, active.expiresAt) : Number.POSITIVE_INFINITY;
  return leftDays <= job.graceDays ? `the active key ends by itself in ${Math.floor(leftDays)} days` : undefined;
}

/** A key that a person put back stays for as long as a new one would, or it would be replaced at once. */
export function daysInService(key: LedgerKey, now: Date): number {
  return daysBetween(key.putBackAt ?? key.requestedAt, now);
}

function missingSinks(job: RotationJob, key: LedgerKey): Sink[] {
  return job.deliver.filter((sink) => !key.deliveredTo.includes(sinkId(sink)));
}

function sinksLeft(job: RotationJob, key: LedgerKey): boolean {
  return missingSinks(job, key).length > 0;
}

function daysBetween(from: Date, to: Date): number {
  return (to.getTime() - from.getTime()) / DAY_MS;
}
