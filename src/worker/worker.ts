// The worker: plans at each tick, handles queue jobs, and gives back what it can't finish when it has to stop.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import os from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { App } from "../app.ts";
import { serialTask } from "../async.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import {
  type ConfigRefusal,
  deleteOldWorkers,
  heartbeatWorker,
  markWorkerStopped,
  type NewWorker,
} from "../db/jobs/jobs.ts";
import type { ClaimedJob } from "../db/jobs/queue.ts";
import { deleteOldRuns, retryRefusals } from "../db/jobs/runs.ts";
import { AppError, errorCode, errorText, unexpectedStack } from "../errors.ts";
import { judgeDays, PROJECTS_AT_ONCE } from "../jobs/export.ts";
import type { PrintedKeys } from "../jobs/key-ring.ts";
import { programVersion } from "../package-files.ts";
import { setTimers } from "../schedule/timers.ts";
import type { ProcessMetrics } from "../show/prometheus.ts";
import { DAY_MS } from "../usage/days.ts";
import { openWorkerContext, retryUntilReached, type WorkerContext } from "./context.ts";
import { handleProject } from "./handle-project.ts";
import type { Liveness } from "./liveness.ts";
import { openNotifier } from "./notifier.ts";
import { openProjectWatch } from "./projects.ts";
import { handleRotation } from "./rotation.ts";
import { tick, withCurrentValues } from "./tick.ts";
import type { Receivers } from "./webhook.ts";

/**
 * The states of a worker, one after the other:
 *
 * - opening: waits for its database
 * - working: ticks, and claims queue jobs; until a signal, or until another configuration is to be taken up
 * - draining: claims no more; the requests in flight are completed, the other ones of their projects stay in the queue
 * - aborting: what is still in hand is aborted
 * - closed
 */
type WorkerState = "opening" | "working" | "draining" | "aborting" | "closed";

/** The part of `drainSeconds` that is reserved for releasing unfinished jobs. */
const RELEASE_MS = 2_000;
/** The part of `drainSeconds` that is reserved for everything after the jobs, until the process ends. */
const SIGN_OFF_MS = 2_000;
/** Longest wait for marking the worker as stopped and for closing the queue and the service. */
const CLOSE_MS_MAX = 500;
/** How often a worker looks for days to judge: they become final at midnight or by a reading, and minutes do not matter. */
const JUDGE_MS = 5 * 60_000;
/** A rotation whose delivery takes long must not hold up those of other projects. */
const ROTATIONS_AT_ONCE = 8;
/** A key that the service has paused leaves room for the projects of other keys. */
const PROJECTS_OF_A_KEY = PROJECTS_AT_ONCE / 2;
/** A tick that lost its database is repeated after this time, before the next minute. */
const TICK_RETRY_MS = 5_000;

type WorkerDeps = {
  /** The process, which stays the same worker when it takes up another configuration. */
  readonly worker: NewWorker;
  readonly liveness: Liveness;
  readonly metrics: ProcessMetrics;
  readonly receivers: Receivers;
  readonly printedKeys: PrintedKeys;
  /** Aborted when another configuration is to be taken up. */
  readonly superseded: AbortSignal;
  readonly refusal: () => ConfigRefusal | undefined;
  /** Called when the projects may no longer be those of the configuration. */
  readonly onProjectsChanged: () => void;
  /** Called when the database is reached, before the first tick. */
  readonly onReady?: () => Promise<void>;
};

export async function newWorker(): Promise<NewWorker> {
  return { workerId: randomUUID(), host: os.hostname(), pid: process.pid, version: await programVersion() };
}

/**
 * Works until the signal of the app or until the configuration is superseded, then finishes the jobs it has claimed: within the
 * configuration's `drainSeconds`, or with more patience if the process goes on.
 */
export async function runWorker(app: App, config: Config, db: Database, deps: WorkerDeps): Promise<void> {
  const { worker, liveness, metrics, receivers, printedKeys, superseded, refusal, onReady } = deps;
  let state: WorkerState = "opening";
  const enter = (next: WorkerState) => {
    app.log.debug({ from: state, to: next }, "worker state");
    state = next;
  };
  const hardStop = new AbortController();
  const workApp = { ...app, signal: hardStop.signal };
  const stop = AbortSignal.any([app.signal, superseded]);
  const opened = await retryUntilReached(app, liveness, app.signal, () =>
    openWorkerContext(workApp, config, db, metrics, printedKeys, liveness.reportDatabase),
  );
  // Retried separately: if the database is lost here, the context must not be opened a second time.
  await retryUntilReached(app, liveness, app.signal, async () => {
    await deleteOldWorkers(db);
    await retryRefusals(db);
    await heartbeatWorker(db, worker, refusal());
    await onReady?.();
  });
  enter("working");
  app.log.info({ jobs: config.exports.length, rotations: config.rotations.length }, "worker started");
  const scrub = (text: string) => app.scrubber.scrub(text);
  const notifications = serialTask(openNotifier({ db, config, log: app.log, scrub, metrics }, receivers, stop));
  const ticks = startTicks(opened, () => heartbeatWorker(db, worker, refusal()), liveness, {
    onFinished: notifications.request,
    onProjectsChanged: deps.onProjectsChanged,
  });
  await startWork(ticks.current, stop, deps.onProjectsChanged);
  try {
    if (!stop.aborted) await once(stop, "abort");
    app.log.info(
      app.signal.aborted
        ? "worker stops: it claims no more jobs"
        : "worker takes up the changed configuration when its claimed jobs are finished",
    );
  } finally {
    enter("draining");
    const drained = Promise.all([ticks.stop(), notifications.stop(), opened.queue.drain()]);
    // Nothing presses while the process goes on, and a request that is cut off would have to be made again.
    if (!app.signal.aborted) await waitWhileRunning(app.signal, config.service.timeoutSeconds * 1000, drained);
    await stopWithin(config.worker.drainSeconds * 1000, drained, () => {
      enter("aborting");
      hardStop.abort(new AppError("stopped", "the worker stops"));
    });
    const signOff = app.signal.aborted ? markWorkerStopped(db, worker.workerId) : undefined;
    await waitAtMost(CLOSE_MS_MAX, Promise.allSettled([signOff, opened.queue.stop(), opened.service.close()]));
    enter("closed");
    if (app.signal.aborted) app.log.info("worker stopped");
  }
}

/** Waits for the promise, for `ms` at most, and not after the signal. */
async function waitWhileRunning(signal: AbortSignal, ms: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  await Promise.race([promise, sleep(ms, undefined, { signal: until })]).catch(() => {});
  over.abort();
}

/** Claims queue jobs from now on. `current` returns the context with the values of fan-outs as they are known now. */
async function startWork(
  current: () => WorkerContext,
  stopping: AbortSignal,
  onUnknownProject: () => void,
): Promise<void> {
  const { queue } = current();
  await queue.work("export", {
    ...{ atOnce: PROJECTS_AT_ONCE, ofGroup: PROJECTS_OF_A_KEY },
    handle: (job, handBack) =>
      retriedIfFailed(current(), job, async () => {
        try {
          await handleProject(current(), { stopping, onUnknownProject }, job);
        } catch (error) {
          if (errorCode(error) !== "stopped" || job.signal.aborted) throw error;
          // Nothing has failed, and another worker can go on at once.
          await handBack();
        }
      }),
  });
  await queue.work("rotation", {
    atOnce: ROTATIONS_AT_ONCE,
    handle: (job) => retriedIfFailed(current(), job, () => handleRotation(current(), job, onUnknownProject)),
  });
}

/** The queue stores the error of a job and tries it again: only the text, without anything secret. */
async function retriedIfFailed(
  { app }: WorkerContext,
  { data, retryCount }: ClaimedJob,
  handle: () => Promise<void>,
): Promise<void> {
  try {
    await handle();
  } catch (error) {
    const reason = app.scrubber.scrub(errorText(error));
    const code = errorCode(error);
    const isExpected = app.signal.aborted || isConnectionError(error) || code !== "internal";
    const facts = { data, attempt: retryCount + 1, code, reason, stack: unexpectedStack(error) };
    app.log[isExpected ? "debug" : "error"](facts, "queue job failed, to be tried again");
    const failure = new Error(reason);
    delete failure.stack;
    throw failure;
  }
}

type TickListeners = {
  /** Called after each tick, also after one that failed. */
  readonly onFinished: () => void;
  readonly onProjectsChanged: () => void;
};

type Ticks = {
  /** The context of the newest tick. */
  readonly current: () => WorkerContext;
  readonly stop: () => Promise<void>;
};

function startTicks(
  opened: WorkerContext,
  heartbeat: () => Promise<void>,
  liveness: Liveness,
  { onFinished, onProjectsChanged }: TickListeners,
): Ticks {
  const { app, config, db } = opened;
  let context = opened;
  const onRead = () => ticks.request();
  const watchProjects = openProjectWatch({ app, config, db, onChange: onProjectsChanged, onRead });
  const maintain = openMaintenance(opened, heartbeat);
  const ticks = serialTask(async () => {
    try {
      const held = await watchProjects();
      if (!held) context = await withCurrentValues(opened);
      const { started, wakeInMs } = held ?? (await tick(context));
      if (started) opened.queue.wake();
      if (wakeInMs !== undefined) timers.fireIn(wakeInMs);
      await maintain();
      app.log.debug({ started, wakeInMs }, "tick finished");
    } catch (error) {
      liveness.reportDatabase(error);
      timers.fireIn(TICK_RETRY_MS);
    }
    liveness.heartbeat();
    onFinished();
  });
  const jobs = [...config.exports, ...config.rotations];
  // The jobs of many projects have one schedule.
  const schedules = new Map(jobs.map((job) => [`${job.schedule} ${job.timezone}`, job]));
  const timers = setTimers([...schedules.values()], ticks.request);
  ticks.request();
  return {
    current: () => context,
    async stop() {
      timers.stop();
      await ticks.stop();
    },
  };
}

/** What a worker does after each tick: renews heartbeats, and once a day deletes old runs. */
function openMaintenance(context: WorkerContext, heartbeat: () => Promise<void>): () => Promise<void> {
  const { app, db, config } = context;
  let deletedMs = Number.NEGATIVE_INFINITY;
  let judgedMs = Number.NEGATIVE_INFINITY;
  return async () => {
    await heartbeat();
    if (performance.now() - judgedMs >= JUDGE_MS) {
      await judgeDays(context);
      judgedMs = performance.now();
    }
    if (performance.now() - deletedMs < DAY_MS) return;
    const deleted = await deleteOldRuns(db, config.runs.keepDays, new Date());
    deletedMs = performance.now();
    if (deleted.runs + deleted.keyEvents > 0) app.log.info(deleted, "old runs deleted");
  };
}

/** Gives claimed jobs time to end by themselves; those that have not are then aborted and released. */
async function stopWithin(ms: number, drained: Promise<unknown>, abort: () => void): Promise<void> {
  const drainMs = Math.max(ms - SIGN_OFF_MS, ms / 2);
  const softMs = Math.max(drainMs - RELEASE_MS, drainMs / 2);
  let isDrained = false;
  await waitAtMost(
    softMs,
    drained.then(() => (isDrained = true)),
  );
  if (isDrained) return;
  abort();
  await waitAtMost(drainMs - softMs, drained);
}

/** A database that does not answer must not delay the worker's end. */
async function waitAtMost(ms: number, promise: Promise<unknown>): Promise<void> {
  await Promise.race([promise, sleep(ms, undefined, { ref: false })]);
}
