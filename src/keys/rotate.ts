// Rotates one key: asks the plan for the next step, runs it, and asks again, until no step is left. Each step leaves the
// ledger in a state from which the plan can continue, so a crash between two steps needs no special code.

import { AppError, errorText } from "../errors.ts";
import { runCleanupStep } from "./cleanup.ts";
import { activeKey, type LedgerKey, type NewKey } from "./ledger.ts";
import {
  type CleanupStep,
  type Inspection,
  needsAttention,
  planRotation,
  type RotationPlan,
  type RotationRequest,
  type RotationStep,
} from "./plan.ts";
import { commentOf, missingScopes, type RotationJob, type Sink, sinkId } from "./policy.ts";
import type { RotationDeps } from "./rotation-deps.ts";

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
  wish: RotationRequest,
  signal: AbortSignal,
): Promise<RotationResult> {
  let inspection = await inspectActive(deps, wish, signal);
  const plan = async (): Promise<RotationPlan> => {
    const { ledger, now } = await deps.readLedger();
    return planRotation(job, ledger, now, wish, inspection);
  };
  const forward = await runSteps(job, plan, deps, signal, ({ kind }) => {
    // The key has just been delivered again, so an earlier finding that files lack it is out of date.
    if (kind === "deliver" && inspection) inspection = { ...inspection, stale: new Map() };
  });
  const backward = await runCleanup(job, plan, deps, signal);
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
async function inspectActive(
  deps: RotationDeps,
  wish: RotationRequest,
  signal: AbortSignal,
): Promise<Inspection | undefined> {
  const { ledger } = await deps.readLedger();
  const active = activeKey(ledger);
  const isOnItsWay = ledger.keys.some(({ state }) => state === "pending") || ledger.rollbackTo !== undefined;
  if (!active || isOnItsWay || wish.freshSince || wish.previousSince) return undefined;
  return deps.inspect(active, signal);
}

type StepsDone = { readonly did: readonly string[]; readonly errors: readonly string[] };

/** Towards a key in use, step by step, as far as it goes. */
async function runSteps(
  job: RotationJob,
  plan: () => Promise<RotationPlan>,
  deps: RotationDeps,
  signal: AbortSignal,
  onDone: (step: RotationStep) => void,
): Promise<StepsDone & { readonly idle: string | undefined }> {
  const did: string[] = [];
  try {
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const { next, idle, blocked } = await plan();
      if (!next) return { did, idle, errors: blocked === undefined ? [] : [blocked] };
      signal.throwIfAborted();
      await runStep(job, next, deps, signal);
      did.push(stepText(next));
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
async function runCleanup(
  job: RotationJob,
  plan: () => Promise<RotationPlan>,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<StepsDone & { readonly kept: readonly string[] }> {
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
      const tidied = await runCleanupStep(job, step, deps, signal);
      if (tidied.did) did.push(stepText(step));
      if (tidied.kept !== undefined) kept.push(`${step.key.apiKeyId ?? step.key.intentId}: ${tidied.kept}`);
    } catch (error) {
      errors.push(`${stepText(step)}: ${failureText(error, signal)}`);
    }
  }
}

/** Lets pass what is not this rotation's failure: an abort, a lost lease, a lost database, a mistake of this program. */
function failureText(error: unknown, signal: AbortSignal): string {
  signal.throwIfAborted();
  if (error instanceof AppError && error.code !== "stopped") return errorText(error);
  throw error;
}

function stepText(step: RotationStep | CleanupStep): string {
  const key = "key" in step ? ` ${step.key.apiKeyId ?? step.key.intentId}` : "";
  return `${step.kind}${key}: ${step.reason}`;
}

// Does one step towards a key in use. Each is safe to repeat but the create, which is never repeated.

export async function runStep(
  job: RotationJob,
  step: RotationStep,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<void> {
  switch (step.kind) {
    case "create":
      return createKey(job, step.reason, deps, signal);
    case "lose":
      await deps.writeLedger({ kind: "orphan", intentId: step.key.intentId }, step.reason);
      // Else a process that dies at every create would make a key at every start.
      return deps.writeLedger({ kind: "failed" }, step.reason);
    case "verify":
      return verifyNewKey(step.key, deps, signal);
    case "deliver":
      return deliverToSinks(step.key, step.sinks, deps);
    case "promote": {
      const putBack = step.key.state === "draining";
      return deps.writeLedger({ kind: "active", intentId: step.key.intentId, putBack }, step.reason);
    }
    case "abandon":
      return deps.writeLedger({ kind: "abandoned", intentId: step.key.intentId }, step.reason);
    case "recall":
      return restorePrevious(step.key, step.reason, deps, signal);
    case "settle":
      return deps.writeLedger({ kind: "recovered" }, step.reason);
  }
}

/**
 * The intent is recorded before the POST and stands in the key's comment: whatever happens in between, the key that it
 * may have made is known of. The POST is sent once. What can fail is tried before.
 */
async function createKey(job: RotationJob, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<void> {
  for (const sink of job.deliver) await deps.testSink(sink);
  const caller = await deps.findCaller(signal);
  const intentId = deps.newIntentId();
  const comment = commentOf(job, intentId);
  await deps.writeLedger({ kind: "intent", intentId, comment }, reason);
  await deps.confirmLease();
  let created: NewKey;
  try {
    created = await deps.create(comment, caller, signal);
  } catch (error) {
    const isSurelyNot = error instanceof AppError ? error.details.created === "no" : error === signal.reason;
    await deps.writeLedger({ kind: isSurelyNot ? "not-created" : "orphan", intentId }, errorText(error));
    throw error;
  }
  await deps.writeLedger({ kind: "stored", intentId, created }, "the service made the key");
}

async function verifyNewKey(key: LedgerKey, deps: RotationDeps, signal: AbortSignal): Promise<void> {
  // A service that does not say what it granted is asked by the call.
  const missing = key.scopesGranted.length > 0 ? missingScopes(key.scopesAsked, key.scopesGranted) : [];
  if (missing.length > 0) {
    throw new AppError(
      "unauthorized",
      `the new key ${key.apiKeyId} was not granted ${missing.join(", ")}; it stays unused, and the current key stays. Mend the scopes and run: usage-export rotate --now`,
    );
  }
  const { apiKeyId, key: secret } = await deps.openKey(key.intentId);
  await deps.verify(secret, apiKeyId, key.scopesGranted, signal);
  await deps.writeLedger({ kind: "verified", intentId: key.intentId }, "a call with it succeeded");
}

/** Every sink is tried, whatever became of the others; the ones that have it are not asked again. */
async function deliverToSinks(key: LedgerKey, sinks: readonly Sink[], deps: RotationDeps): Promise<void> {
  const { apiKeyId, key: secret } = await deps.openKey(key.intentId);
  const failures: AppError[] = [];
  for (const sink of sinks) {
    await deps.confirmLease();
    try {
      await deps.deliver(sink, secret, apiKeyId);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      failures.push(error);
      continue;
    }
    await deps.writeLedger({ kind: "delivered", intentId: key.intentId, sink: sinkId(sink) }, `to ${sinkId(sink)}`);
  }
  if (failures[0]) throw failures[0];
}

/** The service may have lost it since: a key that does not work is not put back. */
async function restorePrevious(key: LedgerKey, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<void> {
  const { apiKeyId, key: secret } = await deps.openKey(key.intentId);
  await deps.verify(secret, apiKeyId, key.scopesGranted, signal);
  await deps.writeLedger({ kind: "rollback", intentId: key.intentId }, reason);
}
