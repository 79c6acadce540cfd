// Rotates one key: asks the plan for the next step, does it, and asks again, until nothing is left to do. Each step leaves
// the ledger in a state that the plan goes on from, so a crash between any two of them needs no special code.

import { AppError, errorText } from "../errors.ts";
import { advance } from "./advance.ts";
import { activeKey } from "./ledger.ts";
import { needsAttention, type Plan, planRotation } from "./plan.ts";
import type { CleanupStep } from "./plan-cleanup.ts";
import type { Inspection, Step, Wish } from "./plan-next.ts";
import type { RotationJob } from "./policy.ts";
import type { RotationDeps } from "./rotation-deps.ts";
import { tidy } from "./tidy.ts";

export type RotationResult = {
  readonly status: "ok" | "failed";
  /** What was done, in order. */
  readonly did: readonly string[];
  /** Which earlier keys were left unchanged, and why. */
  readonly kept: readonly string[];
  /** Why nothing was left to do. */
  readonly idle: string | undefined;
  /** Only a person makes it create again. */
  readonly needsAttention: boolean;
  readonly errors: readonly string[];
};

/** Far more than a rotation has; a plan that does not come to an end is a mistake in it. */
const STEPS_MAX = 50;

export async function rotateKey(
  job: RotationJob,
  deps: RotationDeps,
  wish: Wish,
  signal: AbortSignal,
): Promise<RotationResult> {
  let inspection = await inspectActive(deps, wish, signal);
  const plan = async (): Promise<Plan> => {
    const { ledger, now } = await deps.readLedger();
    return planRotation(job, ledger, now, wish, inspection);
  };
  const forward = await goForward(job, plan, deps, signal, ({ kind }) => {
    // The key has just been delivered again, so an earlier finding that files lack it is out of date.
    if (kind === "deliver" && inspection) inspection = { ...inspection, stale: new Map() };
  });
  const backward = await tidyUp(job, plan, deps, signal);
  const errors = [...forward.errors, ...backward.errors];
  const { ledger } = await deps.readLedger();
  return {
    status: errors.length === 0 ? "ok" : "failed",
    did: [...forward.did, ...backward.did],
    kept: backward.kept,
    idle: forward.idle,
    needsAttention: needsAttention(ledger.failedAttempts),
    errors,
  };
}

/** Inspects the key only if the result can matter: not if a person decided, and not while another key is being delivered. */
async function inspectActive(deps: RotationDeps, wish: Wish, signal: AbortSignal): Promise<Inspection | undefined> {
  const { ledger } = await deps.readLedger();
  const active = activeKey(ledger);
  const isOnItsWay = ledger.keys.some(({ state }) => state === "pending") || ledger.rollbackTo !== undefined;
  if (!active || isOnItsWay || wish.freshSince || wish.previousSince) return undefined;
  return deps.inspect(active, signal);
}

type Done = { readonly did: readonly string[]; readonly errors: readonly string[] };

/** Towards a key in use, step by step, as far as it goes. */
async function goForward(
  job: RotationJob,
  plan: () => Promise<Plan>,
  deps: RotationDeps,
  signal: AbortSignal,
  onDone: (step: Step) => void,
): Promise<Done & { readonly idle: string | undefined }> {
  const did: string[] = [];
  try {
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const { next, idle, blocked } = await plan();
      if (!next) return { did, idle, errors: blocked === undefined ? [] : [blocked] };
      signal.throwIfAborted();
      await advance(job, next, deps, signal);
      did.push(textOf(next));
      onDone(next);
    }
  } catch (error) {
    const reason = failureText(error, signal);
    await deps.writeLedger({ kind: "failed" }, reason);
    return { did, idle: undefined, errors: [reason] };
  }
  throw new Error(`rotation ${job.name} does not come to an end; its last step was ${did.at(-1)}`);
}

/** Whatever became of the way forward: an old key that can't be removed is no reason to keep another. */
async function tidyUp(
  job: RotationJob,
  plan: () => Promise<Plan>,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<Done & { readonly kept: readonly string[] }> {
  const did: string[] = [];
  const kept: string[] = [];
  const errors: string[] = [];
  const seen = new Set<string>();
  for (;;) {
    // Each once: a step that changed nothing stays in the plan.
    const step = (await plan()).cleanup.find(({ kind, key }) => !seen.has(`${kind} ${key.intentId}`));
    if (!step) return { did, kept, errors };
    signal.throwIfAborted();
    seen.add(`${step.kind} ${step.key.intentId}`);
    try {
      const tidied = await tidy(job, step, deps, signal);
      if (tidied.did) did.push(textOf(step));
      if (tidied.kept !== undefined) kept.push(`${step.key.apiKeyId ?? step.key.intentId}: ${tidied.kept}`);
    } catch (error) {
      errors.push(`${textOf(step)}: ${failureText(error, signal)}`);
    }
  }
}

/** Lets pass what is not this rotation's failure: an abort, a lost lease, a lost database, a mistake of this program. */
function failureText(error: unknown, signal: AbortSignal): string {
  signal.throwIfAborted();
  if (error instanceof AppError && error.code !== "stopped") return errorText(error);
  throw error;
}

function textOf(step: Step | CleanupStep): string {
  const key = "key" in step ? ` ${step.key.apiKeyId ?? step.key.intentId}` : "";
  return `${step.kind}${key}: ${step.reason}`;
}
