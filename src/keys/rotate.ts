// Rotates one key: asks the plan for the next step, does it, and asks again, until nothing is left to do. Each step leaves
// the ledger in a state that the plan goes on from, so a crash between any two of them needs no special code.

import type { Logger } from "pino";
import { AppError, errorText } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { Ledger, LedgerKey } from "./ledger.ts";
import { planRotation, type Step, sinkId, type Wish } from "./plan.ts";
import type { RotationJob, Sink } from "./policy.ts";
import { missingScopes } from "./scopes.ts";

/** One change of the ledger. All that it stands for happens in one transaction, with an event, or not at all. */
export type LedgerChange =
  | { readonly kind: "intent"; readonly intentId: string; readonly comment: string }
  /** The intent surely made no key. */
  | { readonly kind: "not-created"; readonly intentId: string }
  /** The intent made a key, or may have, and its secret is lost. */
  | { readonly kind: "orphan"; readonly intentId: string }
  | { readonly kind: "stored"; readonly intentId: string; readonly created: NewKey }
  | { readonly kind: "verified"; readonly intentId: string }
  | { readonly kind: "delivered"; readonly intentId: string; readonly sink: string }
  /** In use from now on; the one before it drains. */
  | { readonly kind: "active"; readonly intentId: string }
  | { readonly kind: "abandoned"; readonly intentId: string }
  | { readonly kind: "due-for-removal"; readonly intentId: string }
  | { readonly kind: "retired"; readonly intentId: string }
  /** An orphan that was found at the service. */
  | { readonly kind: "found"; readonly intentId: string; readonly apiKeyId: string }
  | { readonly kind: "failed" };

export type NewKey = {
  readonly apiKeyId: string;
  readonly key: Secret;
  readonly scopes: readonly string[];
  /** As the service says; never relied on. */
  readonly created?: string | undefined;
};

export type ServiceKey = { readonly apiKeyId: string; readonly comment: string };

/** Whether a key was seen in use since it was replaced; "unknown" where the service does not tell. */
export type SeenInUse = { readonly seen: "yes" | "no" | "unknown"; readonly text: string };

/** What a rotation needs from the world. */
export type RotationDeps = {
  readonly readLedger: () => Promise<Ledger>;
  /** Throws `stopped` where another process has taken the rotation over. */
  readonly writeLedger: (change: LedgerChange, reason: string) => Promise<void>;
  /** The clock of the ledger. */
  readonly now: () => Promise<Date>;
  readonly newIntentId: () => string;
  /** Throws `stopped` where the rotation is not this process's any more. */
  readonly confirmLease: () => Promise<void>;
  readonly testSink: (sink: Sink) => Promise<void>;
  readonly deliver: (sink: Sink, key: Secret, apiKeyId: string) => Promise<void>;
  /** One POST. A failure says in `details.created` whether a key may have been made. */
  readonly create: (comment: string, signal: AbortSignal) => Promise<NewKey>;
  readonly openKey: (intentId: string) => Promise<{ readonly apiKeyId: string; readonly key: Secret }>;
  /** A harmless call with the new key. */
  readonly verify: (key: Secret, apiKeyId: string, granted: readonly string[], signal: AbortSignal) => Promise<void>;
  /** Undefined where the service does not list its keys. */
  readonly list: (signal: AbortSignal) => Promise<readonly ServiceKey[] | undefined>;
  /** The key this rotation calls with. Undefined where the service does not tell. */
  readonly callerId: (signal: AbortSignal) => Promise<string | undefined>;
  readonly remove: (apiKeyId: string, signal: AbortSignal) => Promise<"deleted" | "absent">;
  readonly seenInUse: (key: LedgerKey, signal: AbortSignal) => Promise<SeenInUse>;
  readonly log: Logger;
};

export type RotationResult = {
  readonly status: "ok" | "failed";
  /** What was done, in order. */
  readonly did: readonly string[];
  /** Why nothing was left to do, or nothing may be done. */
  readonly idle: string | undefined;
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
  const did: string[] = [];
  const errors: string[] = [];
  const plan = async () => planRotation(job, await deps.readLedger(), await deps.now(), wish);
  try {
    for (let { next } = await plan(), steps = 0; next; { next } = await plan(), steps++) {
      if (steps >= STEPS_MAX) throw new Error(`rotation ${job.name} does not come to an end at ${next.kind}`);
      signal.throwIfAborted();
      await advance(job, next, deps, signal);
      did.push(textOf(next));
    }
  } catch (error) {
    const reason = failureText(error, signal);
    errors.push(reason);
    await deps.writeLedger({ kind: "failed" }, reason);
  }
  const seen = new Set<string>();
  for (let step = await nextCleanup(); step; step = await nextCleanup()) {
    signal.throwIfAborted();
    seen.add(idOf(step));
    try {
      if (await tidy(step, deps, signal)) did.push(textOf(step));
    } catch (error) {
      errors.push(`${textOf(step)}: ${failureText(error, signal)}`);
    }
  }
  const { idle, needsAttention } = await plan();
  return { status: errors.length > 0 || needsAttention ? "failed" : "ok", did, idle, needsAttention, errors };

  /** Each once: a step that changed nothing stays in the plan. */
  async function nextCleanup(): Promise<Step | undefined> {
    return (await plan()).cleanup.find((step) => !seen.has(idOf(step)));
  }
}

/** Lets pass what is not this rotation's failure: an abort, a lost lease, a lost database, a mistake of this program. */
function failureText(error: unknown, signal: AbortSignal): string {
  signal.throwIfAborted();
  if (error instanceof AppError && error.code !== "stopped" && error.code !== "database") return errorText(error);
  throw error;
}

function idOf(step: Step): string {
  return step.kind === "create" ? "create" : `${step.kind} ${step.key.intentId}`;
}

function textOf(step: Step): string {
  const key = step.kind === "create" ? "" : ` ${step.key.apiKeyId ?? step.key.intentId}`;
  return `${step.kind}${key}: ${step.reason}`;
}

async function advance(job: RotationJob, step: Step, deps: RotationDeps, signal: AbortSignal): Promise<void> {
  switch (step.kind) {
    case "create":
      return create(job, step.reason, deps, signal);
    case "lose":
      return deps.writeLedger({ kind: "orphan", intentId: step.key.intentId }, step.reason);
    case "verify":
      return verify(step.key, deps, signal);
    case "deliver":
      return deliver(step.key, step.sinks, deps);
    case "promote":
      return deps.writeLedger({ kind: "active", intentId: step.key.intentId }, step.reason);
    case "abandon":
      return deps.writeLedger({ kind: "abandoned", intentId: step.key.intentId }, step.reason);
    default:
      throw new Error(`${step.kind} is no step towards a key in use`);
  }
}

/**
 * The intent is recorded before the POST and stands in the key's comment: whatever happens in between, the key that it
 * may have made is known of. The POST is sent once.
 */
async function create(job: RotationJob, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<void> {
  for (const sink of job.deliver) await deps.testSink(sink);
  const intentId = deps.newIntentId();
  const comment = job.commentTemplate.replaceAll("{comment}", job.comment).replaceAll("{id}", intentId);
  await deps.writeLedger({ kind: "intent", intentId, comment }, reason);
  await deps.confirmLease();
  let created: NewKey;
  try {
    created = await deps.create(comment, signal);
  } catch (error) {
    const surelyNot = error instanceof AppError ? error.details.created === "no" : error === signal.reason;
    const change = surelyNot ? ({ kind: "not-created", intentId } as const) : ({ kind: "orphan", intentId } as const);
    await deps.writeLedger(change, errorText(error));
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
      `the new key ${key.apiKeyId} was not granted ${missing.join(", ")}; it stays unused, and the current key stays`,
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

/** Returns whether anything changed. */
async function tidy(step: Step, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  switch (step.kind) {
    case "release":
      return release(step.key, step.reason, deps, signal);
    case "delete":
      return remove(step.key, step.reason, deps, signal);
    case "search":
      return search(step.key, step.giveUp, deps, signal);
    case "recheck":
      return recheck(step.key, deps, signal);
    default:
      throw new Error(`${step.kind} does not tidy up`);
  }
}

async function release(key: LedgerKey, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  const { seen, text } = await deps.seenInUse(key, signal);
  if (seen === "yes") {
    deps.log.warn({ apiKeyId: key.apiKeyId, reason: text }, "replaced key still in use");
    return false;
  }
  await deps.writeLedger({ kind: "due-for-removal", intentId: key.intentId }, `${reason}; ${text}`);
  return true;
}

/** The plan never names the key in use; what the service knows guards once more, as nothing there protects a last key. */
async function remove(key: LedgerKey, reason: string, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  if (key.apiKeyId === undefined) return false;
  const [listed, callerId] = await Promise.all([deps.list(signal), deps.callerId(signal)]);
  if (callerId === key.apiKeyId) {
    deps.log.warn({ apiKeyId: key.apiKeyId }, "key not deleted: it is the one this rotation calls with");
    return false;
  }
  if (listed && !listed.some(({ apiKeyId }) => apiKeyId !== key.apiKeyId)) {
    deps.log.warn({ apiKeyId: key.apiKeyId }, "key not deleted: it is the last one");
    return false;
  }
  await deps.confirmLease();
  const outcome = await deps.remove(key.apiKeyId, signal);
  const how = outcome === "deleted" ? "deleted at the service" : "the service had it no more";
  await deps.writeLedger({ kind: "retired", intentId: key.intentId }, `${reason}; ${how}`);
  return true;
}

async function search(key: LedgerKey, giveUp: boolean, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  const listed = await deps.list(signal);
  const found = listed?.find(({ comment }) => comment.includes(key.intentId));
  if (found) {
    const { apiKeyId } = found;
    await deps.writeLedger(
      { kind: "found", intentId: key.intentId, apiKeyId },
      "the service lists a key with its comment",
    );
    return true;
  }
  if (!listed || !giveUp) return false;
  await deps.writeLedger({ kind: "retired", intentId: key.intentId }, "the service lists no key with its comment");
  return true;
}

/** A list without the key in use is not the whole list, and says nothing of the others. */
async function recheck(key: LedgerKey, deps: RotationDeps, signal: AbortSignal): Promise<boolean> {
  const [listed, ledger] = await Promise.all([deps.list(signal), deps.readLedger()]);
  const active = ledger.keys.find(({ state }) => state === "active")?.apiKeyId;
  const ids = listed?.map(({ apiKeyId }) => apiKeyId) ?? [];
  if (active === undefined || !ids.includes(active) || (key.apiKeyId && ids.includes(key.apiKeyId))) return false;
  await deps.writeLedger({ kind: "retired", intentId: key.intentId }, "the service lists it no more");
  return true;
}
