// Works at one usage request from the queue. Its answer, the end of the work and its count in the run are one transaction.

import { recordFailure } from "../db/failures.ts";
import { REQUEST_ATTEMPTS_MAX, type Taken } from "../db/queue.ts";
import { type RunEnd, type Settled, settleRequest } from "../db/shared-runs.ts";
import { inTransaction, type Tx } from "../db/transaction.ts";
import { exportDeps } from "../jobs/export-deps.ts";
import type { FeatureCheck } from "../jobs/feature-check.ts";
import { rememberKeys } from "../jobs/remember-keys.ts";
import { daysOf } from "../usage/day.ts";
import { countStored } from "../usage/export.ts";
import { describe, exportRequest, type Refusal } from "../usage/export-request.ts";
import { sliceCount } from "../usage/plan.ts";
import { parseQueued, type QueuedRequest, requestOf } from "./queued-request.ts";
import { tellRunEnded } from "./run-ended.ts";
import type { WorkerWorld } from "./world.ts";

/** What may be gone in a minute. All else would be the same. */
const TRIED_AGAIN = new Set<string>(["unavailable", "rate_limited"]);

export type FeaturesOfRun = (runId: string) => FeatureCheck;

/** Throws only where the work is to be tried again by whoever takes it next. */
export async function workAtRequest(
  world: WorkerWorld,
  featuresOfRun: FeaturesOfRun,
  taken: Taken,
  signal: AbortSignal,
): Promise<void> {
  const work = parseQueued(taken.data);
  const request = requestOf(work);
  const { runId, job, runDay, seriesId, emptyGuard, cliffGuard, checkFeatures, undated } = work;
  const features = featuresOfRun(runId);
  const settling = openSettling(world, taken, work);
  const deps = {
    ...exportDeps(world, {
      runId,
      check: { features, strictness: checkFeatures },
      emptyGuard,
      undated,
      cliffGuard,
      idOf: () => seriesId,
      also: (tx, result) => settling.settle(tx, { ...countStored(result), failed: 0, error: undefined }),
      triedAgain: (code) => TRIED_AGAIN.has(code),
    }),
    refuse: () => features.refusalOf(request, checkFeatures),
    log: world.app.log.child({ job, runId }),
  };
  await deps.backlog.room();
  const outcome = await exportRequest(request, runDay, deps, signal);
  if ("reason" in outcome) {
    if (TRIED_AGAIN.has(outcome.code)) return tryAgain(world, taken, work, outcome);
    await inTransaction(world.db, (tx) => settling.settle(tx, failed(world, work, outcome.reason)));
  }
  deps.log.debug(describe(request), "usage request settled");
  // By whoever made its last request, so that it is once a run.
  if (settling.tell()) await rememberKeys(world, world.config.exports.find(({ name }) => name === job)?.projects ?? []);
}

async function tryAgain(
  { queue, app }: WorkerWorld,
  taken: Taken,
  work: QueuedRequest,
  outcome: Refusal,
): Promise<void> {
  const { reason, code } = outcome;
  const nextAttemptAt = await queue.fail(taken, { reason: app.scrubber.scrub(reason), code });
  const attempt = { attempt: taken.retryCount + 1, attempts: REQUEST_ATTEMPTS_MAX, nextAttemptAt };
  const { job, runId } = work;
  app.log.warn(
    { job, runId, code, reason, ...describe(requestOf(work)), ...attempt },
    nextAttemptAt ? "usage request failed, to be tried again" : "usage request failed for the last time",
  );
}

/** Counts a request that was given up: its process ended, or the service was away, once too often. */
export async function bury(world: WorkerWorld, taken: Taken): Promise<void> {
  const work = parseQueued(taken.data);
  const { seriesId, fetchNo, window, runDay } = work;
  const reason = world.app.scrubber.scrub(`${taken.lastError ?? "no answer"}; given up after all tries of this run`);
  const days = window ? daysOf(window) : [runDay];
  await recordFailure(world.db, { seriesId, fetchNo, days, reason, code: taken.lastCode });
  const settling = openSettling(world, taken, work);
  await inTransaction(world.db, (tx) => settling.settle(tx, failed(world, work, reason)));
  world.app.log.error(
    { job: work.job, runId: work.runId, ...window, reason, attempts: REQUEST_ATTEMPTS_MAX },
    "usage request given up",
  );
  settling.tell();
}

function openSettling({ app, queue, metrics }: WorkerWorld, taken: Taken, { runId, job }: QueuedRequest) {
  let counted: Settled | undefined;
  let end: RunEnd | undefined;
  return {
    /** May be run again with its transaction. */
    async settle(tx: Tx, settled: Settled): Promise<void> {
      // Where the work is somebody else's by now it is theirs to count.
      counted = (await queue.complete(tx, taken)) ? settled : undefined;
      end = counted && (await settleRequest(tx, runId, counted));
    },
    /** After its transaction. Whether the run ended with it. */
    tell(): boolean {
      if (counted) metrics.rowsChanged(job, counted.rowsChanged);
      if (!end) return false;
      tellRunEnded({ app, metrics }, { ...end, kind: "export" });
      return true;
    },
  };
}

function failed({ app }: WorkerWorld, work: QueuedRequest, reason: string): Settled {
  const slices = sliceCount(requestOf(work));
  return {
    complete: 0,
    suspect: 0,
    undated: 0,
    stale: 0,
    failed: slices,
    rowsChanged: 0,
    error: app.scrubber.scrub(reason),
  };
}
