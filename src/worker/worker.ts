// The worker: plans at each tick, handles queue jobs, and releases what it can't finish when it has to stop.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import os from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { App } from "../app.ts";
import { serialTask } from "../async.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import type { ClaimedJob } from "../db/jobs/queue.ts";
import { deleteOldRuns, heartbeatQueuedRuns } from "../db/jobs/runs.ts";
import {
  type ConfigRefusal,
  deleteOldWorkers,
  heartbeatWorker,
  markWorkerStopped,
  type NewWorker,
} from "../db/jobs/workers.ts";
import { retryRefusals } from "../db/usage/refusals.ts";
import { AppError } from "../errors.ts";
import type { ProcessMetrics } from "../health/metrics.ts";
import { openNotifier } from "../health/notifier.ts";
import type { Receivers } from "../health/webhook.ts";
import { openClockWatch } from "../jobs/clocks.ts";
import { judgeDays } from "../jobs/judge-days.ts";
import type { PrintedKeys } from "../jobs/key-commands.ts";
import { programVersion } from "../package-files.ts";
import { setTimers } from "../schedule/timers.ts";
import { DAY_MS } from "../usage/days.ts";
import { type Consumer, type ConsumerSettings, openConsumer } from "./consumer.ts";
import { openWorkerContext, retryUntilReached, type WorkerContext } from "./context.ts";
import { filterCheckByRun, handleChunk, handleDeadLetter } from "./handle-chunk.ts";
import type { Liveness } from "./liveness.ts";
import { openProjectWatch } from "./projects.ts";
import { handleRotation } from "./rotation.ts";
import { tick } from "./tick.ts";

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
  const hardStop = new AbortController();
  const workApp = { ...app, signal: hardStop.signal };
  const stop = AbortSignal.any([app.signal, superseded]);
  const context = await retryUntilReached(app, liveness, app.signal, () =>
    openWorkerContext(workApp, config, db, metrics, printedKeys),
  );
  // Retried separately: if the database is lost here, the context must not be opened a second time.
  await retryUntilReached(app, liveness, app.signal, async () => {
    await deleteOldWorkers(db);
    await retryRefusals(db);
    await heartbeatWorker(db, worker, refusal());
    await onReady?.();
  });
  app.log.info({ jobs: config.exports.length, rotations: config.rotations.length }, "worker started");
  const consumers = openConsumers(context, liveness, hardStop.signal, deps.onProjectsChanged);
  const scrub = (text: string) => app.scrubber.scrub(text);
  const notifier = openNotifier({ db, config, log: app.log, scrub, metrics }, receivers, stop);
  const notifications = serialTask(notifier.tick);
  const heartbeat = () => heartbeatWorker(db, worker, refusal());
  const stopTicks = startTicks(context, heartbeat, liveness, {
    onNewJobs: () => consumers.forEach((one) => void one.wake()),
    onFinished: notifications.request,
    onProjectsChanged: deps.onProjectsChanged,
  });
  try {
    if (!stop.aborted) await once(stop, "abort");
    app.log.info(
      app.signal.aborted
        ? "worker stops: it claims no more jobs"
        : "worker takes up the changed configuration when its claimed jobs are finished",
    );
  } finally {
    const drained = Promise.all([stopTicks(), notifications.stop(), ...consumers.map((one) => one.drain())]);
    // Nothing presses while the process goes on, and a request that is cut off would have to be made again.
    if (!app.signal.aborted) await waitWhileRunning(app.signal, config.service.timeoutSeconds * 1000, drained);
    await stopWithin(config.worker.drainSeconds * 1000, drained, hardStop);
    const signOff = app.signal.aborted ? markWorkerStopped(db, worker.workerId) : undefined;
    await waitAtMost(CLOSE_MS_MAX, Promise.allSettled([signOff, context.queue.stop(), context.service.close()]));
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

function openConsumers(
  context: WorkerContext,
  liveness: Liveness,
  hardStop: AbortSignal,
  onUnknownProject: () => void,
): readonly Consumer[] {
  const { queue, service } = context;
  // Each run repeats calls that the service refused in an earlier run: the key may have been given the right since then.
  const filterCheckOf = filterCheckByRun(context, () => service.forgetAuthFailures());
  const settings: readonly ConsumerSettings[] = [
    {
      queue: "usage_request",
      idleMs: 1_000,
      handle: (job, handling) => handleChunk(context, { filterCheckOf, onUnknownProject }, job, handling),
    },
    { queue: "usage_request_dead", idleMs: 5_000, handle: (job) => handleDeadLetter(context, job) },
    {
      queue: "rotation",
      idleMs: 2_000,
      handle: severalAtOnce(ROTATIONS_AT_ONCE, (job) => handleRotation(context, job, onUnknownProject)),
    },
  ];
  return settings.map((one) =>
    openConsumer(one, { queue, log: context.app.log, reportDatabase: liveness.reportDatabase, hardStop }),
  );
}

/** Lets the consumer claim the next job while fewer than `max` are being handled. */
function severalAtOnce(max: number, handle: (job: ClaimedJob) => Promise<void>): ConsumerSettings["handle"] {
  let handled = 0;
  let onRoom = () => {};
  return async (job, { onReady }) => {
    handled++;
    if (handled < max) onReady();
    else onRoom = onReady;
    try {
      await handle(job);
    } finally {
      handled--;
      onRoom();
    }
  };
}

type TickListeners = {
  readonly onNewJobs: () => void;
  /** Called after each tick, also after one that failed. */
  readonly onFinished: () => void;
  readonly onProjectsChanged: () => void;
};

/** Returns the function that stops the ticks. */
function startTicks(
  context: WorkerContext,
  heartbeat: () => Promise<void>,
  liveness: Liveness,
  { onNewJobs, onFinished, onProjectsChanged }: TickListeners,
): () => Promise<void> {
  const { app, config, db, metrics } = context;
  const watchClock = openClockWatch(app, db);
  const onRead = () => ticks.request();
  const watchProjects = openProjectWatch({ app, config, db, onChange: onProjectsChanged, onRead });
  const maintain = openMaintenance(context, heartbeat);
  const ticks = serialTask(async () => {
    const startedMs = performance.now();
    try {
      await watchClock();
      const { started, wakeInMs } = (await watchProjects()) ?? (await tick(context));
      metrics.tickEnded((performance.now() - startedMs) / 1000);
      if (started) onNewJobs();
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
  return async () => {
    timers.stop();
    await ticks.stop();
  };
}

/** What a worker does after each tick: renews heartbeats, and once a day deletes old runs. */
function openMaintenance(context: WorkerContext, heartbeat: () => Promise<void>): () => Promise<void> {
  const { app, db, config } = context;
  let deletedMs = Number.NEGATIVE_INFINITY;
  let judgedMs = Number.NEGATIVE_INFINITY;
  return async () => {
    await heartbeat();
    await heartbeatQueuedRuns(db);
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
async function stopWithin(ms: number, drained: Promise<unknown>, hardStop: AbortController): Promise<void> {
  const drainMs = Math.max(ms - SIGN_OFF_MS, ms / 2);
  const softMs = Math.max(drainMs - RELEASE_MS, drainMs / 2);
  await waitAtMost(softMs, drained);
  hardStop.abort(new AppError("stopped", "the worker stops"));
  await waitAtMost(drainMs - softMs, drained);
}

/** A database that does not answer must not delay the worker's end. */
async function waitAtMost(ms: number, promise: Promise<unknown>): Promise<void> {
  await Promise.race([promise, sleep(ms, undefined, { ref: false })]);
}
