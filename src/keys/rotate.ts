// Rotates one key: asks the plan for the next step, runs it, and asks again, until no step is left. Each step leaves the
// ledger in a state from which the plan can continue, so a crash between two steps needs no special code.

import { AppError, errorText } from "../errors.ts";
import { runCleanupStep } from "./cleanup.ts";
import { activeKey, type LedgerKey, type NewKey } from "./ledger.ts";
import {
  type CleanupStep,
  cleanupSteps,
  type Inspection,
  needsAttention,
  planRotation,
  type RotationRequest,
  type RotationStep,
} from "./plan.ts";
import { commentOf, missingScopes, type Sink, sinkId } from "./policy.ts";
import type { RotationDeps, RotationTask } from "./rotation-deps.ts";

export type RotationResult = {
  readonly status: "ok" | "failed";
  /** What was done, in order. */
  readonly did: readonly string[];
  /** Which earlier keys were left unchanged, and why. */
  readonly kept: readonly string[];
  /** Why nothing was left to do. */
  readonly idle: string | undefined;
  /** Whether so many attempts failed that no key is created until a person runs `rotate --now`. */
  readonly needsAttention: boolean;
  readonly errors: readonly string[];
};

type Progress = {
  readonly did: string[];
  readonly kept: string[];
  readonly errors: string[];
  idle: string | undefined;
};

/** Far more than a rotation needs: a plan with more steps than this does not come to an end. */
const STEPS_MAX = 50;

export async function rotateKey(task: RotationTask, request: RotationRequest): Promise<RotationResult> {
  const progress: Progress = { did: [], kept: [], errors: [], idle: undefined };
  await runSteps(task, request, progress);
  await runCleanup(task, progress);
  const { ledger } = await task.deps.ledger.read();
  return {
    status: progress.errors.length === 0 ? "ok" : "failed",
    ...progress,
    needsAttention: needsAttention(ledger.failedAttempts),
  };
}

/** Runs the steps towards an active key until none is left or one fails. */
async function runSteps(task: RotationTask, request: RotationRequest, progress: Progress): Promise<void> {
  const { job, deps, signal } = task;
  let inspection = await inspectActive(deps, request);
  try {
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const { ledger, now } = await deps.ledger.read();
      const { next, idle, blocked } = planRotation(job, ledger, now, request, inspection);
      if (!next) {
        progress.idle = idle;
        if (blocked !== undefined) progress.errors.push(blocked);
        return;
      }
      signal.throwIfAborted();
      await runStep(task, next);
      progress.did.push(stepText(next));
      // The key has just been delivered again, so an earlier finding that files lack it is out of date.
      if (next.kind === "deliver" && inspection) inspection = { ...inspection, stale: new Map() };
    }
  } catch (error) {
    const reason = failureText(error, signal);
    await deps.ledger.write({ kind: "failed" }, reason);
    progress.errors.push(reason);
    return;
  }
  throw new Error(`rotation ${job.name} does not come to an end; its last step was ${progress.did.at(-1)}`);
}

/**
 * Inspects the active key only if the result can matter: not if a person asked for a new key or for the previous one, and not while
 * another key is being delivered.
 */
async function inspectActive(deps: RotationDeps, request: RotationRequest): Promise<Inspection | undefined> {
  const { ledger } = await deps.ledger.read();
  const active = activeKey(ledger);
  const isReplacing = ledger.keys.some(({ state }) => state === "pending") || ledger.rollbackTo !== undefined;
  if (!active || isReplacing || request.freshRequestedAt || request.previousRequestedAt) return undefined;
  return deps.inspect(active);
}

/** Runs even if a step towards an active key failed. If the cleanup of one key fails, the others are still cleaned up. */
async function runCleanup(task: RotationTask, progress: Progress): Promise<void> {
  const { job, deps, signal } = task;
  const done = new Set<string>();
  for (;;) {
    const { ledger, now } = await deps.ledger.read();
    // Each step runs once: one that changed nothing stays in the plan.
    const step = cleanupSteps(job, ledger, now).find(({ kind, key }) => !done.has(`${kind} ${key.intentId}`));
    if (!step) return;
    signal.throwIfAborted();
    done.add(`${step.kind} ${step.key.intentId}`);
    try {
      const { changed, kept } = await runCleanupStep(task, step);
      if (changed) progress.did.push(stepText(step));
      if (kept !== undefined) progress.kept.push(`${nameOf(step.key)}: ${kept}`);
    } catch (error) {
      progress.errors.push(`${stepText(step)}: ${failureText(error, signal)}`);
    }
  }
}

/**
 * Rethrows what is not a failure of this rotation: an abort, a lost lease (code "stopped"), and every error that is no AppError: a lost
 * database or a bug.
 */
function failureText(error: unknown, signal: AbortSignal): string {
  signal.throwIfAborted();
  if (error instanceof AppError && error.code !== "stopped") return errorText(error);
  throw error;
}

function stepText(step: RotationStep | CleanupStep): string {
  return `${step.kind}${"key" in step ? ` ${nameOf(step.key)}` : ""}: ${step.reason}`;
}

function nameOf({ apiKeyId, intentId }: LedgerKey): string {
  return apiKeyId ?? intentId;
}

// Runs one step towards an active key. Every step except the create is safe to repeat; the create is never repeated.

export async function runStep(task: RotationTask, step: RotationStep): Promise<void> {
  const { ledger } = task.deps;
  switch (step.kind) {
    case "create":
      return createKey(task, step.reason);
    case "mark-orphan":
      await ledger.write({ kind: "orphan", intentId: step.key.intentId }, step.reason);
      // Counted as a failure: otherwise a process that dies at every create would make a key at every start.
      return ledger.write({ kind: "failed" }, step.reason);
    case "verify":
      return verifyNewKey(task.deps, step.key);
    case "deliver":
      return deliverToSinks(task.deps, step.key, step.sinks);
    case "promote": {
      // A new key is pending; a draining one was active before, and a person asked to have it back.
      const putBack = step.key.state === "draining";
      return ledger.write({ kind: "active", intentId: step.key.intentId, putBack }, step.reason);
    }
    case "abandon":
      return ledger.write({ kind: "abandoned", intentId: step.key.intentId }, step.reason);
    case "restore":
      // The service may have deleted it since: a key that does not work is not put back.
      await verifyStored(task.deps, step.key);
      return ledger.write({ kind: "rollback", intentId: step.key.intentId }, step.reason);
    case "recover":
      // Resets the count of failed attempts.
      return ledger.write({ kind: "recovered" }, step.reason);
  }
}

/**
 * The intent is recorded before the POST and its id is in the key's comment: whatever happens in between, the key that may have
 * been made can be found. The POST is sent once. Everything that can be checked is checked before it.
 */
async function createKey({ job, deps, signal }: RotationTask, reason: string): Promise<void> {
  for (const sink of job.deliver) await deps.testSink(sink);
  const caller = await deps.findCaller();
  const intentId = deps.newIntentId();
  const comment = commentOf(job, intentId);
  await deps.ledger.write({ kind: "intent", intentId, comment }, reason);
  await deps.ledger.confirmLease();
  let created: NewKey;
  try {
    created = await deps.create(comment, caller);
  } catch (error) {
    // An abort shows that nothing was sent: it does not interrupt a create that is being sent.
    const isCertainlyNotCreated = error instanceof AppError ? error.details.created === "no" : error === signal.reason;
    await deps.ledger.write({ kind: isCertainlyNotCreated ? "not-created" : "orphan", intentId }, errorText(error));
    throw error;
  }
  await deps.ledger.write({ kind: "stored", intentId, created }, "the service made the key");
}

async function verifyNewKey(deps: RotationDeps, key: LedgerKey): Promise<void> {
  // If the service does not say which scopes it granted, only the call below shows what the key may do.
  const missing = key.scopesGranted.length > 0 ? missingScopes(key.scopesAsked, key.scopesGranted) : [];
  if (missing.length > 0) {
    throw new AppError(
      "unauthorized",
      `the new key ${key.apiKeyId} was not granted ${missing.join(", ")}; it stays unused, and the current key stays. Fix the scopes and run: usage-export rotate --now`,
    );
  }
  await verifyStored(deps, key);
  await deps.ledger.write({ kind: "verified", intentId: key.intentId }, "a call with it succeeded");
}

async function verifyStored(deps: RotationDeps, { intentId, scopesGranted }: LedgerKey): Promise<void> {
  await deps.verify(await deps.ledger.openKey(intentId), scopesGranted);
}

/** Delivers to every sink, also after one has failed; a sink that has the key is recorded and not delivered to again. */
async function deliverToSinks(deps: RotationDeps, { intentId }: LedgerKey, sinks: readonly Sink[]): Promise<void> {
  const opened = await deps.ledger.openKey(intentId);
  const failures: AppError[] = [];
  for (const sink of sinks) {
    await deps.ledger.confirmLease();
    try {
      await deps.deliver(sink, opened);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      failures.push(error);
      continue;
    }
    await deps.ledger.write({ kind: "delivered", intentId, sink: sinkId(sink) }, `to ${sinkId(sink)}`);
  }
  if (failures[0]) throw failures[0];
}
