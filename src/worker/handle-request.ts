// Handles a usage request from the queue. Storing its answer, completing the queue job and counting it in the run are one
// transaction.

import { inTransaction, type Tx } from "../db/connection/transaction.ts";
import { type ClaimedJob, REQUEST_ATTEMPTS_MAX } from "../db/jobs/queue.ts";
import { type RunEnd, recordOutcome } from "../db/jobs/runs.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { syncKeyList } from "../jobs/api-keys.ts";
import { FilterCheck, type FilterCheckDeps } from "../jobs/filter-check.ts";
import { requestDeps } from "../jobs/request-deps.ts";
import { daysOf } from "../usage/days.ts";
import { countOutcome, describeRequest, exportRequest, type FailedRequest, type RunCounts } from "../usage/export.ts";
import type { WorkerContext } from "./context.ts";
import { parseQueuedRequest, type QueuedRequest, reportRunEnd, requestOf } from "./runs.ts";

/** The codes of failures that may be over in a minute. After any other failure another attempt would have the same result. */
const RETRIED_CODES = new Set<string>(["unavailable", "rate_limited"]);

export type FilterCheckOfRun = (runId: string) => FilterCheck;

/** Throws only if the request shall be tried again, by whichever worker claims it next. */
export async function handleRequest(
  context: WorkerContext,
  filterCheckOf: FilterCheckOfRun,
  claimed: ClaimedJob,
  signal: AbortSignal,
): Promise<void> {
  const { app, db, config } = context;
  const queued = parseQueuedRequest(claimed.data);
  const request = requestOf(queued);
  const { runId, job, runDay, seriesId } = queued;
  const recorder = outcomeRecorder(context, claimed, queued);
  const deps = requestDeps(context, {
    runId,
    policy: queued,
    check: filterCheckOf(runId),
    idOf: () => seriesId,
    log: app.log.child({ job, runId }),
    inSameTransaction: (tx, stored) => recorder.record(tx, countOutcome(request, stored)),
    isRetried: (code) => RETRIED_CODES.has(code),
  });
  await deps.backlog.untilRoom();
  const outcome = await exportRequest(request, runDay, deps, signal);
  if ("reason" in outcome) {
    if (RETRIED_CODES.has(outcome.code)) return retryLater(context, claimed, queued, outcome);
    const reason = app.scrubber.scrub(outcome.reason);
    await inTransaction(db, (tx) => recorder.record(tx, countOutcome(request, outcome), reason));
  }
  deps.log.debug(describeRequest(request), "usage request done");
  // The worker that handled the last request of the run does this, so it is done once a run.
  if (recorder.report()) await syncKeyList(context, config.exports.find(({ name }) => name === job)?.projects ?? []);
}

async function retryLater(
  { queue, app }: WorkerContext,
  claimed: ClaimedJob,
  queued: QueuedRequest,
  { reason, code }: FailedRequest,
): Promise<void> {
  const nextAttemptAt = await queue.fail(claimed, { reason: app.scrubber.scrub(reason), code });
  const attempt = { attempt: claimed.retryCount + 1, attempts: REQUEST_ATTEMPTS_MAX, nextAttemptAt };
  const { job, runId } = queued;
  app.log.warn(
    { job, runId, code, reason, ...describeRequest(requestOf(queued)), ...attempt },
    nextAttemptAt ? "usage request failed, to be tried again" : "usage request failed for the last time",
  );
}

/** Counts a request as failed after its last attempt. Each attempt failed because its process ended or the service was not available. */
export async function handleDeadLetter(context: WorkerContext, claimed: ClaimedJob): Promise<void> {
  const { app, db } = context;
  const queued = parseQueuedRequest(claimed.data);
  const { job, runId, seriesId, fetchNo, window, runDay } = queued;
  const reason = app.scrubber.scrub(`${claimed.lastError ?? "no answer"}; given up after all tries of this run`);
  const days = window ? daysOf(window) : [runDay];
  await recordFailure(db, { seriesId, fetchNo, days, reason, code: claimed.lastCode });
  const recorder = outcomeRecorder(context, claimed, queued);
  const counts = countOutcome(requestOf(queued), { reason, code: "unavailable" });
  await inTransaction(db, (tx) => recorder.record(tx, counts, reason));
  app.log.error({ job, runId, ...window, reason, attempts: REQUEST_ATTEMPTS_MAX }, "usage request given up");
  recorder.report();
}

function outcomeRecorder({ app, queue, metrics }: WorkerContext, claimed: ClaimedJob, { runId, job }: QueuedRequest) {
  let recorded: RunCounts | undefined;
  let end: RunEnd | undefined;
  return {
    /** Completes the queue job and counts its outcome. Can be repeated together with its transaction. */
    async record(tx: Tx, counts: RunCounts, error?: string): Promise<void> {
      // If another worker has claimed the job by now, that worker counts it.
      recorded = (await queue.complete(tx, claimed)) ? counts : undefined;
      end = recorded && (await recordOutcome(tx, runId, recorded, error));
    },
    /** To be called after the commit. Returns whether the run ended with this request. */
    report(): boolean {
      if (recorded) metrics.rowsChanged(job, recorded.rowsChanged);
      if (!end) return false;
      reportRunEnd({ app, metrics }, { ...end, kind: "export" });
      return true;
    },
  };
}

/** More than the number of runs that overlap. */
const CHECKS_MAX = 16;

/**
 * One filter check for each run, so that each run reads anew which names the service knows. `onNewRun` is called at a run's first
 * request.
 */
export function filterCheckByRun(context: FilterCheckDeps, onNewRun: () => void): FilterCheckOfRun {
  const checks = new Map<string, FilterCheck>();
  return (runId) => {
    const known = checks.get(runId);
    if (known) return known;
    onNewRun();
    const check = new FilterCheck(context);
    checks.set(runId, check);
    const [oldest] = checks.keys();
    if (checks.size > CHECKS_MAX && oldest !== undefined) checks.delete(oldest);
    return check;
  };
}
