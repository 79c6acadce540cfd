// Does one step towards a key in use. Each is safe to repeat but the create, which is never repeated.

import { AppError, errorText } from "../errors.ts";
import type { LedgerKey, NewKey } from "./ledger.ts";
import type { Step } from "./plan-next.ts";
import { commentOf, type RotationJob, type Sink, sinkId } from "./policy.ts";
import type { RotationDeps } from "./rotation-deps.ts";
import { missingScopes } from "./scopes.ts";

export async function advance(job: RotationJob, step: Step, deps: RotationDeps, signal: AbortSignal): Promise<void> {
  switch (step.kind) {
    case "create":
      return create(job, step.reason, deps, signal);
    case "lose":
      await deps.writeLedger({ kind: "orphan", intentId: step.key.intentId }, step.reason);
      // Else a process that dies at every create would make a key at every start.
      return deps.writeLedger({ kind: "failed" }, step.reason);
    case "verify":
      return verify(step.key, deps, signal);
    case "deliver":
      return deliver(step.key, step.sinks, deps);
    case "promote": {
      const putBack = step.key.state === "draining";
      return deps.writeLedger({ kind: "active", intentId: step.key.intentId, putBack }, step.reason);
    }
    case "abandon":
      return deps.writeLedger({ kind: "abandoned", intentId: step.key.intentId }, step.reason);
    case "recall":
      return recall(step.key, step.reason, deps, signal);
    case "settle":
      return deps.writeLedger({ kind: "recovered" }, step.reason);
  }
}

/**
 * The intent is recorded before the POST and stands in the key's comment: whatever happens in between, the key that it
 * may have made is known of. The POST is sent once. What can fail is tried before.
 */
async function create(job: RotationJob, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<void> {
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

async function verify(key: LedgerKey, deps: RotationDeps, signal: AbortSignal): Promise<void> {
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
async function deliver(key: LedgerKey, sinks: readonly Sink[], deps: RotationDeps): Promise<void> {
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
async function recall(key: LedgerKey, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<void> {
  const { apiKeyId, key: secret } = await deps.openKey(key.intentId);
  await deps.verify(secret, apiKeyId, key.scopesGranted, signal);
  await deps.writeLedger({ kind: "rollback", intentId: key.intentId }, reason);
}
