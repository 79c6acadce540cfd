// Runs a rotation job once, under a lease, and records the run.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { databaseNow } from "../db/database.ts";
import { LEASE_SECONDS, type Lease, releaseLease, renewLease, takeLease } from "../db/lease.ts";
import { finishRun, startRun, touchRun } from "../db/runs.ts";
import { AppError, errorText } from "../errors.ts";
import type { Wish } from "../keys/plan-next.ts";
import type { RotationJob } from "../keys/policy.ts";
import { type RotationResult, rotateKey } from "../keys/rotate.ts";
import { NOTHING_DONE, type RunTrigger } from "../usage/export.ts";
import { type RotationContext, rotationDeps } from "./rotation-wiring.ts";

export type RotationWish = {
  readonly now?: boolean;
  readonly rollback?: boolean;
  /** The run it belongs to, where there is one already. */
  readonly runId?: string;
};

const RENEW_MS = (LEASE_SECONDS * 1000) / 3;
/** A lease and a little: after a crash its holder's lease has run out by then. */
const LEASE_WAIT_MS_MAX = LEASE_SECONDS * 2_000;
const LEASE_LOOK_MS = 250;

/** Rotates one key now, if it is due or `asked` says so. Waits for another process that does. */
export async function runRotationJob(
  context: RotationContext,
  job: RotationJob,
  trigger: RunTrigger,
  asked: RotationWish,
): Promise<RotationResult> {
  const { app, db } = context;
  // Before the wait: what another process has done in the meantime fulfils the wish.
  const wish = wishOf(asked, await databaseNow(db));
  const lease = await waitForLease(context, job);
  const runId = asked.runId ?? randomUUID();
  const renewing = setInterval(() => void stayAlive(context, lease, runId), RENEW_MS);
  try {
    await startRun(db, { runId, kind: "rotation", job: job.name, trigger });
    const result = await rotateKey(job, rotationDeps(context, job, lease), wish, app.signal);
    const error = result.errors[0];
    await finishRun(db, runId, result.status, NOTHING_DONE, error && app.scrubber.scrub(error));
    app.log.info({ rotation: job.name, runId, did: result.did, status: result.status }, "rotation finished");
    return result;
  } catch (error) {
    const status = app.signal.aborted ? "stopped" : "failed";
    await finishRun(db, runId, status, NOTHING_DONE, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(renewing);
    await releaseLease(db, lease).catch(() => {});
  }
}

export function wishOf({ now, rollback }: RotationWish, at: Date): Wish {
  return { ...(now && { freshSince: at }), ...(rollback && { previousSince: at }) };
}

/** A lease that was lost is noticed by the next write, and a database that is away too. */
async function stayAlive({ db }: RotationContext, lease: Lease, runId: string): Promise<void> {
  await Promise.allSettled([renewLease(db, lease), touchRun(db, runId)]);
}

async function waitForLease({ app, db }: RotationContext, job: RotationJob): Promise<Lease> {
  const until = performance.now() + LEASE_WAIT_MS_MAX;
  for (let looks = 0; ; looks++) {
    const lease = await takeLease(db, job.name, app.actor);
    if (lease) return lease;
    if (looks === 0) app.log.info({ rotation: job.name }, "waiting for another process that rotates");
    if (performance.now() > until) {
      throw new AppError(
        "stopped",
        `another process is rotating ${job.name}; it has not finished in ${LEASE_WAIT_MS_MAX / 1000} s`,
      );
    }
    await sleep(LEASE_LOOK_MS, undefined, { signal: app.signal });
  }
}
