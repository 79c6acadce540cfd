// Rotates a key under a lease: keys/rotation-plan.ts names the next step, rotation-steps.ts takes it, and db/keys/ledger.ts records it, until no
// step is left. Each step leaves the ledger in a state from which the plan can continue, so a crash between two steps needs no special code.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { min } from "date-fns/min";
import type { App } from "../app.ts";
import type { RotationConfig } from "../config/rotations.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { endProjects, recordRun } from "../db/jobs/runs.ts";
import { LEASE_SECONDS, type Lease, releaseLease, renewLease, takeLease } from "../db/keys/lease.ts";
import { openKeyLedger } from "../db/keys/ledger.ts";
import { openMasterKeys } from "../db/keys/sealed-keys.ts";
import { AppError, errorText } from "../errors.ts";
import {
  type CleanupStep,
  cleanupSteps,
  planRotation,
  type RotationRequest,
  type RotationStep,
} from "../keys/rotation-plan.ts";
import { NO_COUNTS } from "../usage/counts.ts";
import type { RotationContext } from "./context.ts";
import { readClocks } from "./key-checks.ts";
import { inspectActive, type RotationRun, takeCleanupStep, takeStep } from "./rotation-steps.ts";

/** `kept`: which replaced keys were left unchanged, and why. `idle`: why nothing was left to do. */
export type RotationResult = Readonly<Record<"did" | "kept" | "errors", readonly string[]>> & {
  readonly status: "ok" | "failed";
  readonly idle: string | undefined;
};

const RENEW_MS = (LEASE_SECONDS * 1000) / 3;
/** Twice as long as a lease: by then the lease of a crashed process has expired. */
const LEASE_WAIT_MS_MAX = 2 * LEASE_SECONDS * 1000;
const LEASE_POLL_MS = 250;

/** Calls `work` under the rotation's lease. If another process has the lease, waits for it, and throws `stopped` if that takes too long. */
export async function withRotationLease<T>(
  { app, db }: Pick<RotationContext, "app" | "db">,
  rotation: RotationConfig,
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  const lease = await waitForLease(app, db, rotation);
  // A failure to renew is ignored: the next write to the ledger fails for the same reason, a lost lease or an unreachable database.
  const renewing = setInterval(() => void renewLease(db, lease).catch(() => {}), RENEW_MS);
  try {
    return await work(lease);
  } finally {
    clearInterval(renewing);
    await releaseLease(db, lease).catch(() => {});
  }
}

export async function rotateKey(
  context: RotationContext,
  rotation: RotationConfig,
  lease: Lease,
  request?: RotationRequest,
): Promise<RotationResult> {
  const { app, db } = context;
  const masterKeys = await openMasterKeys(app, db);
  const log = app.log.child({ rotation: rotation.name });
  const ledger = openKeyLedger(db, { job: rotation, lease, actor: app.actor, masterKeys, scrubber: app.scrubber, log });
  const run: RotationRun = { context, rotation, ledger, did: [], kept: [], errors: [] };
  const idle = await takeSteps(run, request);
  await cleanUp(run);
  const { did, kept, errors } = run;
  return { status: errors.length === 0 ? "ok" : "failed", did, kept, idle, errors };
}

/** Rotates the keys of one configured rotation one after the other, and records this as one manual run. */
export async function rotateByHand(
  context: RotationContext,
  jobName: string,
  rotations: readonly RotationConfig[],
  wants: Wants,
  onResult: (rotation: RotationConfig, result: RotationResult) => void,
): Promise<void> {
  const run = { runId: randomUUID(), kind: "rotation", job: jobName, trigger: "manual" } as const;
  const projects = rotations.map(({ project }) => ({ projectId: project.id, planned: 0 }));
  await recordRun(context, run, projects, async () => {
    let firstError: string | undefined;
    for (const rotation of rotations) {
      const result = await rotateOne(context, rotation, wants);
      onResult(rotation, result);
      const [reason] = result.errors;
      firstError ??= reason;
      const error = reason && context.app.scrubber.scrub(reason);
      await endProjects(context.db, [{ ...run, projectId: rotation.project.id, counts: NO_COUNTS, error }]);
    }
    return { status: firstError === undefined ? "ok" : "failed", error: firstError };
  });
}

export type Wants = RotationRequest["wants"] | undefined;

/** A failure becomes the result, so that the other keys are still rotated. */
async function rotateOne(context: RotationContext, rotation: RotationConfig, wants: Wants): Promise<RotationResult> {
  // The time is read before the wait for the lease: a key that another process makes during the wait fulfils the request.
  const request = wants && { wants, at: await databaseNow(context.db) };
  try {
    return await withRotationLease(context, rotation, (lease) => rotateKey(context, rotation, lease, request));
  } catch (error) {
    if (context.app.signal.aborted || !(error instanceof AppError)) throw error;
    // A `config` error, such as a missing key, ends the command, unless the rotation is for many projects: only such a one has a `jobName`.
    if (error.code === "config" && rotation.jobName === undefined) throw error;
    return { status: "failed", did: [], kept: [], idle: undefined, errors: [errorText(error)] };
  }
}

async function waitForLease({ log, signal }: App, db: Database, rotation: RotationConfig): Promise<Lease> {
  const until = performance.now() + LEASE_WAIT_MS_MAX;
  for (let attempt = 1; ; attempt++) {
    const lease = await takeLease(db, rotation);
    if (lease) return lease;
    if (attempt === 1) log.info({ rotation: rotation.name }, "waiting for another process that rotates this key");
    if (performance.now() > until) {
      const waited = `it has not finished in ${LEASE_WAIT_MS_MAX / 1000} s`;
      throw new AppError("stopped", `another process is rotating ${rotation.name}; ${waited}`);
    }
    await sleep(LEASE_POLL_MS, undefined, { signal });
  }
}

const STEPS_MAX = 50;

/** Takes the steps towards an active key until none is left or one fails. Returns why nothing is left to do. */
async function takeSteps(run: RotationRun, request: RotationRequest | undefined): Promise<string | undefined> {
  const { rotation, ledger, context, did, errors } = run;
  // A person's request is fulfilled whether or not the active key works.
  let inspection = request ? undefined : await inspectActive(run);
  try {
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const { ledger: stored, now } = await ledger.read();
      const { next, idle, blocked } = planRotation(rotation, stored, now, request, inspection);
      if (!next) {
        if (blocked !== undefined) errors.push(blocked);
        return idle;
      }
      context.app.signal.throwIfAborted();
      await takeStep(run, next);
      did.push(stepText(next));
      // After the step the inspection may no longer be true.
      inspection = undefined;
    }
  } catch (error) {
    const reason = expectedFailure(error, context.app.signal);
    await ledger.write({ kind: "failed" }, reason);
    errors.push(reason);
    return undefined;
  }
  throw new Error(`rotation ${rotation.name} does not come to an end; its last step was ${did.at(-1)}`);
}

/** Runs even if a step towards an active key failed. If the cleanup of one key fails, the others are still cleaned up. */
async function cleanUp(run: RotationRun): Promise<void> {
  const done = new Set<string>();
  for (;;) {
    const { ledger } = await run.ledger.read();
    // Planned by the earliest of the clocks of database, machine and service: one that has jumped ahead must not end the grace of a key.
    const steps = cleanupSteps(run.rotation, ledger, min(await readClocks(run.context)));
    // Each step is taken once: a step that changed nothing stays in the plan.
    const step = steps.find(({ kind, key }) => !done.has(`${kind} ${key.intentId}`));
    if (!step) return;
    run.context.app.signal.throwIfAborted();
    done.add(`${step.kind} ${step.key.intentId}`);
    try {
      if (await takeCleanupStep(run, step)) run.did.push(stepText(step));
    } catch (error) {
      run.errors.push(`${stepText(step)}: ${expectedFailure(error, run.context.app.signal)}`);
    }
  }
}

/** Rethrows what is not a failure of this rotation: an abort, a lost lease (code "stopped"), a lost database or a bug (no AppError). */
function expectedFailure(error: unknown, signal: AbortSignal): string {
  signal.throwIfAborted();
  if (error instanceof AppError && error.code !== "stopped") return errorText(error);
  throw error;
}

export function stepText(step: RotationStep | CleanupStep): string {
  return `${step.kind}${"key" in step ? ` ${step.key.apiKeyId ?? step.key.intentId}` : ""}: ${step.reason}`;
}
