// Handles a chunk of usage requests from the queue. Storing an answer, removing its request from the chunk and counting it in the run
// are one transaction.

import { inTransaction, type Tx } from "../db/connection/transaction.ts";
import { type ClaimedJob, REQUEST_ATTEMPTS_MAX } from "../db/jobs/queue.ts";
import { closeRequests, type OpenRequest, openRequests, recordAttempt } from "../db/jobs/queued-requests.ts";
import { type EndedRequest, endedRequest } from "../db/jobs/run-requests.ts";
import { hasEnded, type RunEnd, recordOutcomes } from "../db/jobs/runs.ts";
import { vanishedProjects } from "../db/projects.ts";
import type { RecordOutcomes } from "../db/usage/batches.ts";
import { recordFailure } from "../db/usage/failures.ts";
import { FilterCheck, type FilterCheckDeps } from "../jobs/filter-check.ts";
import { readProjectFacts } from "../jobs/project-facts.ts";
import { requestDeps } from "../jobs/request-deps.ts";
import { daysOf } from "../usage/days.ts";
import {
  addCounts,
  countOutcome,
  describeRequest,
  exportUsage,
  type FailedRequest,
  NO_COUNTS,
  type RequestFailure,
  type RunCounts,
} from "../usage/export.ts";
import type { UsageRequest } from "../usage/plan.ts";
import { type Chunk, parseChunk, parseRequest } from "./chunks.ts";
import type { Handling } from "./consumer.ts";
import type { WorkerContext } from "./context.ts";
import { reportRunEnd } from "./runs.ts";

/** More chunks than this, each of up to 50 requests, are not kept in memory to wait for keys and projects that have no room. */
const HELD_BACK_CHUNKS_MAX = 32;
/** How long others may have a chunk of which this process can't make the requests now. */
const HELD_BACK_SECONDS = 10;

/** The codes of failures that may be over in a minute. After any other failure another attempt would have the same result. */
const RETRIED_CODES = new Set<string>(["unavailable", "rate_limited"]);

export type FilterCheckOfRun = (runId: string) => FilterCheck;

export type ChunkDeps = {
  readonly filterCheckOf: FilterCheckOfRun;
  /** Called for a project that is not in the configuration: another worker, which queued its requests, may have a newer one. */
  readonly onUnknownProject: () => void;
};

type OpenRequests = ReadonlyMap<UsageRequest, OpenRequest & { readonly seriesId: number }>;

/** Makes the requests of the chunk that have no outcome yet, and completes, fails or releases the chunk. */
export async function handleChunk(
  context: WorkerContext,
  { filterCheckOf, onUnknownProject }: ChunkDeps,
  claimed: ClaimedJob,
  { signal, stopping, onReady }: Handling,
): Promise<void> {
  const { app, db, queue, config, backlog } = context;
  const chunk = parseChunk(claimed.data);
  const { runId, job, runDay } = chunk;
  const open = await readOpen(context, chunk);
  const missing = requestsOfUnknownProjects(config, open);
  const vanished = missing.length > 0 ? await vanishedProjects(db) : new Set<string>();
  const unknown = missing.filter(({ request }) => !vanished.has(request.series.project.id));
  if (unknown.length > 0) {
    onUnknownProject();
    await recordUnknown(context, open, unknown);
  }
  const recorder = outcomeRecorder(context, claimed, chunk, open);
  const tooMany = new AbortController();
  const allowNext = () => void backlog.untilRoom().then(onReady);
  const deps = {
    ...requestDeps(context, {
      runId,
      policy: chunk,
      check: filterCheckOf(runId),
      idOf: (request) => open.get(request)?.seriesId ?? 0,
      log: app.log.child({ job, runId }),
      record: recorder.record,
      isRetried: (code) => RETRIED_CODES.has(code),
    }),
    // All requests of this chunk are under way: another chunk can be claimed as soon as there is room for its requests.
    onStarted: allowNext,
    // Also if the requests that are left wait for a key or a project: those of other chunks need not.
    onOnlyHeldBack: (chunks: number) => (chunks > HELD_BACK_CHUNKS_MAX ? tooMany.abort() : allowNext()),
    onProgress: recorder.reportRows,
  };
  const stopStarting = AbortSignal.any([stopping, recorder.lost, tooMany.signal]);
  const known = [...new Set(open.keys()).difference(new Set(unknown.map(({ request }) => request)))];
  const run = { requests: known, runDay, stopStarting, countsUntilStored: true };
  const refusalOf = async (request: UsageRequest) =>
    missing.some((one) => one.request === request)
      ? `project "${request.series.project.name}" is no longer in the service's list of projects`
      : deps.refusalOf(request);
  const { requests, failures } = await exportUsage(run, { ...deps, refusalOf }, signal);
  const ended = await recorder.reportEnd();
  const retried = [...failures.filter(({ code }) => RETRIED_CODES.has(code)), ...unknown];
  if (requests < known.length) await queue.release(claimed, tooMany.signal.aborted ? HELD_BACK_SECONDS : 0);
  else if (retried[0]) await retryLater(context, claimed, chunk, retried[0], retried.length);
  else await inTransaction(db, async (tx) => void (await queue.complete(tx, claimed)));
  // The worker that handled the last request of the run does this, so it is done once a run.
  if (!ended) return;
  const configured = config.exports.find(({ name }) => name === job);
  if (configured) await readProjectFacts(context, configured.projects, configured.source);
}

/** They are tried again: by a worker that knows the project, or by this one when it has taken the project up. */
function requestsOfUnknownProjects(
  { projects }: WorkerContext["config"],
  open: OpenRequests,
): readonly RequestFailure[] {
  const ids = new Set(projects.map(({ id }) => id));
  return [...open.keys()].flatMap((request) => {
    const { id, name } = request.series.project;
    const reason = `project "${name}" is not in the configuration of the worker that has its requests`;
    return ids.has(id) ? [] : [{ request, reason, code: "config" as const }];
  });
}

/** Without this, such a request that is given up would be stored with why another request of its chunk failed. */
async function recordUnknown(
  { app, db }: WorkerContext,
  open: OpenRequests,
  unknown: readonly RequestFailure[],
): Promise<void> {
  await inTransaction(db, async (tx) => {
    for (const { request, reason, code } of unknown) {
      const { key = "" } = open.get(request) ?? {};
      await recordAttempt(tx, key, { reason: app.scrubber.scrub(reason), code });
    }
  });
}

async function readOpen({ db }: WorkerContext, { chunkId }: Chunk): Promise<OpenRequests> {
  const rows = await openRequests(db, chunkId);
  return new Map(
    rows.map((row) => {
      const { seriesId, ...request } = parseRequest(row.request);
      return [request, { ...row, seriesId }];
    }),
  );
}

async function retryLater(
  { queue, app }: WorkerContext,
  claimed: ClaimedJob,
  { job, runId }: Chunk,
  { request, reason, code }: RequestFailure,
  requests: number,
): Promise<void> {
  const nextAttemptAt = await queue.fail(claimed, { reason: app.scrubber.scrub(reason), code, requests });
  const attempt = { attempt: claimed.retryCount + 1, attempts: REQUEST_ATTEMPTS_MAX, nextAttemptAt };
  app.log.warn(
    { job, runId, code, reason, ...describeRequest(request), requests, ...attempt },
    `${request.series.source} request failed${nextAttemptAt ? ", to be tried again" : " for the last time"}`,
  );
}

/** Counts what is left of a chunk as failed. Each attempt failed because its process ended or the service was not available. */
export async function handleDeadLetter(context: WorkerContext, claimed: ClaimedJob): Promise<void> {
  const { app, db, queue } = context;
  const chunk = parseChunk(claimed.data);
  const { job, runId, fetchNo, runDay } = chunk;
  const open = await readOpen(context, chunk);
  const recorder = outcomeRecorder(context, claimed, chunk, open);
  if (open.size > 0) await queue.countGivenUp(claimed, open.size);
  for (const [request, { seriesId, error, errorCode }] of open) {
    const { window } = request;
    const text = `${error ?? claimed.lastError ?? "no answer"}; given up after all tries of this run`;
    const reason = app.scrubber.scrub(text);
    const code = errorCode ?? claimed.lastCode;
    const failure = { seriesId, fetchNo, days: window ? daysOf(window) : [runDay], reason, code };
    // Not the code of the last attempt, after which another attempt would follow.
    const outcome: FailedRequest = { reason, code: "internal" };
    await recordFailure(db, failure, (tx) => recorder.record(tx, new Map([[request, outcome]]), code));
    app.log.error(
      { job, runId, ...describeRequest(request), reason, attempts: REQUEST_ATTEMPTS_MAX },
      `${request.series.source} request given up`,
    );
  }
  await inTransaction(db, async (tx) => void (await queue.complete(tx, claimed)));
  await recorder.reportEnd();
}

/** Counts each outcome in the run once, however many workers handle the chunk. */
function outcomeRecorder({ app, db, metrics }: WorkerContext, claimed: ClaimedJob, chunk: Chunk, open: OpenRequests) {
  const lost = new AbortController();
  let end: RunEnd | undefined;
  let rowsReported = 0;

  /** `givenUpCode`: why the last attempt failed of requests that are given up, if that is known. */
  const record = async (tx: Tx, outcomes: Parameters<RecordOutcomes>[1], givenUpCode?: string) => {
    const final = new Map<string, EndedRequest & { readonly counts: RunCounts }>();
    let error: string | undefined;
    for (const [request, outcome] of outcomes) {
      const { key = "", seriesId = 0 } = open.get(request) ?? {};
      const failure = "reason" in outcome ? outcome : undefined;
      if (failure && RETRIED_CODES.has(failure.code)) await recordAttempt(tx, key, failure);
      else {
        const ended = endedRequest(request, outcome, seriesId);
        final.set(key, { ...ended, code: givenUpCode ?? ended.code, counts: countOutcome(request, outcome) });
      }
      error ??= failure?.reason;
    }
    const closed = await closeRequests(tx, claimed, chunk, final);
    // Another worker has claimed the chunk, and has the requests that could not be closed here.
    if (closed.length < final.size) lost.abort();
    const counts = closed.reduce((sum, key) => addCounts(sum, final.get(key)?.counts ?? NO_COUNTS), NO_COUNTS);
    if (closed.length > 0) end = await recordOutcomes(tx, chunk.runId, counts, error);
  };

  return {
    record,
    lost: lost.signal,
    /** To be called after the commit. */
    reportRows({ rowsChanged }: { readonly rowsChanged: number }): void {
      metrics.rowsChanged(chunk.job, rowsChanged - rowsReported);
      rowsReported = rowsChanged;
    },
    /** Returns whether a request of this chunk was the last one of the run. To be called when all requests of the chunk are done. */
    async reportEnd(): Promise<boolean> {
      // The transaction that set `end` may have been rolled back, and another worker may have ended the run since.
      if (!end || !(await hasEnded(db, end))) return false;
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
