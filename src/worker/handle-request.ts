// Handles a usage request from the queue. Storing its answer, completing the queue job and counting it in the run are one
// transaction.

import { inTransaction, type Tx } from "../db/connection/transaction.ts";
import { type ClaimedJob, REQUEST_ATTEMPTS_MAX } from "../db/jobs/queue.ts";
import { type RequestOutcome, type RunEnd, recordOutcome } from "../db/jobs/runs.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { FilterCheck, type FilterCheckDeps } from "../jobs/filter-check.ts";
import { syncKeyList } from "../jobs/key-list.ts";
import { requestDeps } from "../jobs/request-deps.ts";
import { daysOf } from "../usage/days.ts";
import { countOutcome, describeRequest, exportRequest, type FailedRequest } from "../usage/export.ts";
import { sliceCount } from "../usage/plan.ts";
import type { WorkerContext } from "./context.ts";
import { parseQueuedRequest, type QueuedRequest, reportRunEnd, requestOf } from "./runs.ts";

/** What may be gone in a minute. All else would be the same. */
const RETRIED_CODES = new Set<string>(["unavailable", "rate_limited"]);

export type FilterCheckOfRun = (runId: string) => FilterCheck;

/** Throws only where the work is to be tried again by whoever takes it next. */
export async function handleRequest(
  world: WorkerContext,
  featuresOfRun: FilterCheckOfRun,
  taken: ClaimedJob,
  signal: AbortSignal,
): Promise<void> {
  const work = parseQueuedRequest(taken.data);
  const request = requestOf(work);
  const { runId, job, runDay, seriesId } = work;
  const settling = recordingOutcome(world, taken, work);
  const deps = requestDeps(world, {
    runId,
    policy: work,
    check: featuresOfRun(runId),
    idOf: () => seriesId,
    log: world.app.log.child({ job, runId }),
    inSameTransaction: (tx, stored) => settling.settle(tx, { ...countOutcome(request, stored), error: undefined }),
    isRetried: (code) => RETRIED_CODES.has(code),
  });
  await deps.backlog.untilRoom();
  const outcome = await exportRequest(request, runDay, deps, signal);
  if ("reason" in outcome) {
    if (RETRIED_CODES.has(outcome.code)) return retryLater(world, taken, work, outcome);
    await inTransaction(world.db, (tx) => settling.settle(tx, failedOutcome(world, work, outcome.reason)));
  }
  deps.log.debug(describeRequest(request), "usage request settled");
  // By whoever made its last request, so that it is once a run.
  if (settling.tell()) await syncKeyList(world, world.config.exports.find(({ name }) => name === job)?.projects ?? []);
}

async function retryLater(
  { queue, app }: WorkerContext,
  taken: ClaimedJob,
  work: QueuedRequest,
  outcome: FailedRequest,
): Promise<void> {
  const { reason, code } = outcome;
  const nextAttemptAt = await queue.fail(taken, { reason: app.scrubber.scrub(reason), code });
  const attempt = { attempt: taken.retryCount + 1, attempts: REQUEST_ATTEMPTS_MAX, nextAttemptAt };
  const { job, runId } = work;
  app.log.warn(
    { job, runId, code, reason, ...describeRequest(requestOf(work)), ...attempt },
    nextAttemptAt ? "usage request failed, to be tried again" : "usage request failed for the last time",
  );
}

/** Counts a request that was given up: its process ended, or the service was away, once too often. */
export async function handleDeadLetter(world: WorkerContext, taken: ClaimedJob): Promise<void> {
  const work = parseQueuedRequest(taken.data);
  const { seriesId, fetchNo, window, runDay } = work;
  const reason = world.app.scrubber.scrub(`${taken.lastError ?? "no answer"}; given up after all tries of this run`);
  const days = window ? daysOf(window) : [runDay];
  await recordFailure(world.db, { seriesId, fetchNo, days, reason, code: taken.lastCode });
  const settling = recordingOutcome(world, taken, work);
  await inTransaction(world.db, (tx) => settling.settle(tx, failedOutcome(world, work, reason)));
  world.app.log.error(
    { job: work.job, runId: work.runId, ...window, reason, attempts: REQUEST_ATTEMPTS_MAX },
    "usage request given up",
  );
  settling.tell();
}

function recordingOutcome({ app, queue, metrics }: WorkerContext, taken: ClaimedJob, { runId, job }: QueuedRequest) {
  let counted: RequestOutcome | undefined;
  let end: RunEnd | undefined;
  return {
    /** May be run again with its transaction. */
    async settle(tx: Tx, settled: RequestOutcome): Promise<void> {
      // Where the work is somebody else's by now it is theirs to count.
      counted = (await queue.complete(tx, taken)) ? settled : undefined;
      end = counted && (await recordOutcome(tx, runId, counted));
    },
    /** After its transaction. Whether the run ended with it. */
    tell(): boolean {
      if (counted) metrics.rowsChanged(job, counted.rowsChanged);
      if (!end) return false;
      reportRunEnd({ app, metrics }, { ...end, kind: "export" });
      return true;
    },
  };
}

function failedOutcome({ app }: WorkerContext, work: QueuedRequest, reason: string): RequestOutcome {
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

// Each run asks anew which features the service knows, and tries anew what the service refused in the run before.

/** Runs that overlap are few. */
const RUNS_MAX = 16;

export function filterCheckByRun(world: FilterCheckDeps, onNewRun: () => void): FilterCheckOfRun {
  const checks = new Map<string, FilterCheck>();
  return (runId) => {
    const known = checks.get(runId);
    if (known) return known;
    onNewRun();
    const check = new FilterCheck(world);
    checks.set(runId, check);
    const [oldest] = checks.keys();
    if (checks.size > RUNS_MAX && oldest !== undefined) checks.delete(oldest);
    return check;
  };
}
