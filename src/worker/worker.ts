// The worker: plans at each tick, handles queue jobs, and hands back unfinished jobs when it stops.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import os from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { App } from "../app.ts";
import { serialTask } from "../async.ts";
import { jobsOf } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { isAccessFailure, isConnectionError, isTransient } from "../db/connection/errors.ts";
import { heartbeatWorker, markWorkerStopped, type WorkerIdentity } from "../db/jobs/jobs.ts";
import { type ClaimedJob, openQueue, type WorkSettings } from "../db/jobs/queue.ts";
import { deleteOldRecords, retryUnauthorizedDays } from "../db/jobs/runs.ts";
import { AppError, errorCode, errorText, unexpectedStack } from "../errors.ts";
import { openExportContext } from "../jobs/context.ts";
import { judgeDays, PROJECTS_AT_ONCE } from "../jobs/export.ts";
import { programVersion } from "../package-files.ts";
import { setTimers } from "../schedule/schedule.ts";
import { DAY_MS } from "../usage/days.ts";
import { handleProject, type ProjectDeps } from "./handle-project.ts";
import { openNotifier } from "./notifier.ts";
import { watchProjects } from "./project-watch.ts";
import { tick, withCurrentValues } from "./tick.ts";
import { retryUntilReached, type WorkerContext, type WorkerDeps } from "./worker-context.ts";

/** The end of `drainSeconds`, reserved for handing back unfinished jobs and closing everything. */
const RESERVED_MS = 4_000;
/** The longest wait for marking the worker as stopped and for closing the queue and the service. */
const CLOSE_MS_MAX = 500;
/** How often days that were read or became final are checked for unusual usage. */
const JUDGE_MS = 5 * 60_000;
/** A worker runs all day, so it waits as long as the service asks, up to an hour. */
const WAIT_MS_MAX = 60 * 60_000;
/** While some rotations wait for a slow delivery, others go on. */
const ROTATIONS_AT_ONCE = 8;
/** Only half, so that projects with other keys go on while the service makes the calls with one key wait. */
const PROJECTS_AT_ONCE_PER_KEY = PROJECTS_AT_ONCE / 2;
/** A tick sends only a few short statements for each job, so it may come this often. */
const TICK_MS = 10_000;
/** A notification needs the whole health state, which takes seconds with thousands of projects. */
const NOTIFY_MS = 60_000;

export async function newWorker(): Promise<WorkerIdentity> {
  return { workerId: randomUUID(), host: os.hostname(), pid: process.pid, version: await programVersion() };
}

/** Works until the app's signal aborts or the configuration is superseded. Jobs that take longer than `drainSeconds` are handed back. */
export async function runWorker(app: App, db: Database, deps: WorkerDeps): Promise<void> {
  const { worker, liveness, metrics, reloader, onReady } = deps;
  const { config, receivers, superseded } = reloader.current();
  const hardStop = new AbortController();
  const stop = AbortSignal.any([app.signal, superseded]);
  const opened = await retryUntilReached(app, liveness, async () => {
    const options = { onAttempt: metrics.attemptEnded, waitMsMax: WAIT_MS_MAX };
    const context = await openExportContext({ ...app, signal: hardStop.signal }, config, db, options);
    return { ...context, queue: await openQueue(db, app.log, liveness.reportDatabase) };
  });
  const storeHeartbeat = () => heartbeatWorker(db, worker, reloader.refusal());
  // This has a retry of its own: if the database is lost now, the context must not be opened a second time.
  await retryUntilReached(app, liveness, async () => {
    await retryUnauthorizedDays(db);
    await storeHeartbeat();
    await onReady(config);
  });
  app.log.info({ jobs: config.exports.length, rotations: config.rotations.length }, "worker started");
  const notifications = serialTask(openNotifier({ app, db, config, receivers, stop }));
  const notify = atMostEvery(NOTIFY_MS, async () => notifications.request());
  const ticks = startTicks(opened, storeHeartbeat, deps, notify);
  claimJobs(ticks.current, { stopping: stop, onUnknownProject: reloader.request, begunRuns: new Set() });
  try {
    if (!stop.aborted) await once(stop, "abort");
    app.log.info(
      app.signal.aborted
        ? "worker stops: it claims no more jobs"
        : "worker takes up the changed configuration when its requests in flight are finished",
    );
  } finally {
    const drained = Promise.all([ticks.stop(), notifications.stop(), opened.queue.drain()]);
    const drainMs = config.worker.drainSeconds * 1000;
    const reservedMs = Math.min(RESERVED_MS, drainMs / 2);
    await waitAtMost(drainMs - reservedMs, drained);
    hardStop.abort(new AppError("stopped", "the worker stops"));
    await waitAtMost(reservedMs / 2, drained);
    const signOff = app.signal.aborted ? markWorkerStopped(db, worker.workerId) : undefined;
    const closing = [signOff, opened.queue.stop(), opened.service[Symbol.asyncDispose]()];
    await waitAtMost(CLOSE_MS_MAX, Promise.allSettled(closing));
    if (app.signal.aborted) app.log.info("worker stopped");
  }
}

/** A database that does not answer must not delay the worker's end. */
async function waitAtMost(ms: number, promise: Promise<unknown>): Promise<void> {
  await Promise.race([promise, sleep(ms, undefined, { ref: false })]);
}

/** Claims queue jobs from now on. `current` returns the context with the newest values of fan-outs. */
function claimJobs(current: () => WorkerContext, deps: ProjectDeps): void {
  const { queue } = current();
  const handle: WorkSettings["handle"] = (job, handBack) => handleJob(current(), deps, job, handBack);
  queue.work("export", { atOnce: PROJECTS_AT_ONCE, atOnceOfGroup: PROJECTS_AT_ONCE_PER_KEY, handle });
  queue.work("rotation", { atOnce: ROTATIONS_AT_ONCE, handle });
}

/** Throws an error with a scrubbed text and no stack: the queue stores it. */
async function handleJob(context: WorkerContext, deps: ProjectDeps, job: ClaimedJob, handBack: () => Promise<void>) {
  const { app } = context;
  try {
    await handleProject(context, deps, job).catch(async (error: unknown) => {
      // If the job's own signal is aborted, another process has claimed the job: there is nothing to hand back.
      if (errorCode(error) !== "stopped" || job.signal.aborted) throw error;
      // This process stops, or another one rotates the key. Nothing has failed, and another worker may continue the job at once.
      await handBack();
    });
  } catch (error) {
    const reason = app.scrubber.scrub(errorText(error));
    const code = errorCode(error);
    const isExpected = app.signal.aborted || isConnectionError(error) || code !== "internal";
    const facts = { data: job.data, attempt: job.retryCount + 1, code, reason, stack: unexpectedStack(error) };
    app.log[isExpected ? "debug" : "error"](facts, "queue job failed, to be tried again");
    const failure = new Error(reason);
    delete failure.stack;
    throw failure;
  }
}

/** `onFinished` is called after each tick, even a failed one. The returned `current` has the context of the newest tick that planned. */
function startTicks(
  opened: WorkerContext,
  storeHeartbeat: () => Promise<void>,
  { liveness, reloader }: WorkerDeps,
  onFinished: () => Promise<void>,
) {
  const { app, config, db } = opened;
  let context = opened;
  const shouldPlan = watchProjects({ app, config, db, onChange: reloader.request, onRead: () => ticks.request() });
  const judge = atMostEvery(JUDGE_MS, () => judgeDays(opened));
  const cleanUp = atMostEvery(DAY_MS, async () => {
    const deleted = await deleteOldRecords(db, config.runs.keepDays);
    if (deleted.runs + deleted.keyEvents > 0) app.log.info(deleted, "old runs deleted");
  });
  const ticks: ReturnType<typeof serialTask> = serialTask(async () => {
    let failure: unknown;
    try {
      if (await shouldPlan()) {
        context = await withCurrentValues(opened);
        if (await tick(context)) opened.queue.wake();
      }
      await storeHeartbeat();
      await judge();
      await cleanUp();
      app.log.debug("tick finished");
    } catch (error) {
      if (isTransient(error) || isAccessFailure(error)) liveness.reportDatabase(error);
      else if (errorCode(error) !== "stopped") {
        failure = error;
        app.log.error({ reason: errorText(error), stack: unexpectedStack(error) }, "tick failed");
      }
    }
    liveness.heartbeat(failure);
    await onFinished();
  });
  const stopTimers = setTimers(jobsOf(config), TICK_MS, ticks.request);
  ticks.request();
  return {
    current: () => context,
    async stop() {
      stopTimers();
      await ticks.stop();
    },
  };
}

function atMostEvery(ms: number, work: () => Promise<unknown>): () => Promise<void> {
  let doneMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - doneMs < ms) return;
    await work();
    doneMs = performance.now();
  };
}
