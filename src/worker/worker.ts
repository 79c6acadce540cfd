// The worker: plans at each tick, handles queue jobs, and releases what it can't finish when it has to stop.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import os from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type App, originOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { deleteOldRuns, endRunsWithoutJobs, heartbeatQueuedRuns } from "../db/jobs/runs.ts";
import {
  deleteOldWorkers,
  heartbeatWorker,
  markWorkerStopped,
  type NewWorker,
  storedWorkers,
} from "../db/jobs/workers.ts";
import { resumeCalls } from "../db/rate-limit.ts";
import { AppError } from "../errors.ts";
import type { ProcessMetrics } from "../health/metrics.ts";
import { openNotifier } from "../health/notifier.ts";
import type { Receivers } from "../health/webhook.ts";
import { openClockWatch } from "../jobs/clocks.ts";
import { programVersion } from "../package-files.ts";
import { setTimers } from "../schedule/timers.ts";
import { DAY_MS } from "../usage/days.ts";
import { type Consumer, type ConsumerSettings, openConsumer } from "./consumer.ts";
import { openWorkerContext, retryUntilReached, type WorkerContext } from "./context.ts";
import { filterCheckByRun, handleDeadLetter, handleRequest } from "./handle-request.ts";
import type { Liveness } from "./liveness.ts";
import { handleRotation } from "./rotation.ts";
import { reportRunEnd } from "./runs.ts";
import { tick } from "./tick.ts";

/** Of the time there is to stop in, so much is for giving back what could not be finished, and so much for taking leave. */
const RELEASE_MS = 2_000;
const SIGN_OFF_MS = 2_000;
const CLOSE_MS_MAX = 500;
/** What was due at a tick that lost its database does not wait for the next minute. */
const TICK_RETRY_MS = 5_000;

type WorkerDeps = {
  readonly contact: Liveness;
  readonly metrics: ProcessMetrics;
  /** Where notices go. */
  readonly receivers: Receivers;
  /** The database is reached, and nothing is planned yet. */
  readonly onReady?: () => Promise<void>;
};

/** Works until the signal of the app, then finishes what is in hand within the configuration's `drainSeconds`. */
export async function runWorker(
  app: App,
  config: Config,
  db: Database,
  { contact, metrics, receivers, onReady }: WorkerDeps,
): Promise<void> {
  const hard = new AbortController();
  const workApp = { ...app, signal: hard.signal };
  const worker = { workerId: randomUUID(), host: os.hostname(), pid: process.pid, version: await programVersion() };
  const world = await retryUntilReached(app, contact, app.signal, () =>
    openWorkerContext(workApp, config, db, metrics),
  );
  // Apart from opening, which must not be done a second time if the database is lost here.
  await retryUntilReached(app, contact, app.signal, async () => {
    await deleteOldWorkers(db);
    await endPauseWhereAlone(world);
    await heartbeatWorker(db, worker);
    await onReady?.();
  });
  app.log.info({ jobs: config.exports.length, rotations: config.rotations.length }, "worker started");
  const lanes = openConsumers(world, contact, hard.signal);
  const scrub = (text: string) => app.scrubber.scrub(text);
  const notifier = openNotifier({ db, config, log: app.log, scrub, metrics }, receivers, app.signal);
  const notices = serialTask(notifier.tick);
  const stopTicking = startTicks(world, worker, contact, {
    onNewJobs: () => lanes.forEach((one) => void one.wake()),
    onFinished: notices.request,
  });
  try {
    if (!app.signal.aborted) await once(app.signal, "abort");
    app.log.info("worker stops: no new work is taken");
  } finally {
    const over = Promise.all([stopTicking(), notices.stop(), ...lanes.map((one) => one.drain())]);
    await drain(over, hard, config.worker.drainSeconds * 1000);
    const goodbye = markWorkerStopped(db, worker.workerId);
    await waitAtMost(CLOSE_MS_MAX, Promise.allSettled([goodbye, world.queue.stop(), world.service.close()]));
    app.log.info("worker stopped");
  }
}

/** A person who restarts the only worker wants it to work: the reason for the pause may long be gone. */
async function endPauseWhereAlone({ app, config, db }: WorkerContext): Promise<void> {
  const others = await storedWorkers(db);
  if (others.some(({ recent, stoppedAt }) => recent && !stoppedAt)) return;
  const until = await resumeCalls(db, originOf(config));
  if (until) app.log.info({ until }, "calls to the service go on: their pause ended with the start of the only worker");
}

function openConsumers(world: WorkerContext, contact: Liveness, hardStop: AbortSignal): readonly Consumer[] {
  const { queue, service, config } = world;
  const features = filterCheckByRun(world, () => service.forgetAuthFailures());
  const requests = (places: number): ConsumerSettings => ({
    queue: "usage_request",
    concurrency: places,
    idleMs: 1_000,
    handle: (taken, signal) => handleRequest(world, features, taken, signal),
  });
  const settings: readonly ConsumerSettings[] = [
    // Twice as many as may call at once: while the answers of some are stored the others call.
    requests(2 * config.service.maxConcurrent),
    { queue: "usage_request_dead", concurrency: 1, idleMs: 5_000, handle: (taken) => handleDeadLetter(world, taken) },
    { queue: "rotation", concurrency: 1, idleMs: 2_000, handle: (taken) => handleRotation(world, taken) },
  ];
  return settings.map((one) =>
    openConsumer(one, { queue, log: world.app.log, reportDatabase: contact.reportDatabase, hardStop }),
  );
}

type TickListeners = {
  /** There is new work. */
  readonly onNewJobs: () => void;
  /** What was due is decided, or could not be. */
  readonly onFinished: () => void;
};

function startTicks(
  world: WorkerContext,
  worker: NewWorker,
  contact: Liveness,
  { onNewJobs, onFinished }: TickListeners,
): () => Promise<void> {
  const { app, config, db, metrics } = world;
  let forgotMs = Number.NEGATIVE_INFINITY;
  const forgetDaily = async () => {
    if (performance.now() - forgotMs < DAY_MS) return;
    const forgotten = await deleteOldRuns(db, config.runs.keepDays, new Date());
    forgotMs = performance.now();
    if (forgotten.runs + forgotten.keyEvents > 0) app.log.info(forgotten, "old runs deleted");
  };
  const watchClock = openClockWatch(app, db);
  const ticks = serialTask(async () => {
    const startedMs = performance.now();
    try {
      await watchClock();
      const { began, wakeInMs } = await tick(world);
      metrics.tickEnded((performance.now() - startedMs) / 1000);
      if (began) onNewJobs();
      if (wakeInMs !== undefined) alarms.fireIn(wakeInMs);
      await heartbeatWorker(db, worker);
      await heartbeatQueuedRuns(db);
      for (const end of await endRunsWithoutJobs(db)) reportRunEnd(world, { ...end, kind: "export" });
      await forgetDaily();
      app.log.debug({ began, wakeInMs }, "tick over");
    } catch (error) {
      contact.reportDatabase(error);
      alarms.fireIn(TICK_RETRY_MS);
    }
    contact.heartbeat();
    onFinished();
  });
  const alarms = setTimers([...config.exports, ...config.rotations], ticks.request);
  ticks.request();
  return async () => {
    alarms.stop();
    await ticks.stop();
  };
}

/** What is in hand may end by itself, and is ended then. */
async function drain(over: Promise<unknown>, hard: AbortController, drainMs: number): Promise<void> {
  const overMs = Math.max(drainMs - SIGN_OFF_MS, drainMs / 2);
  const softMs = Math.max(overMs - RELEASE_MS, overMs / 2);
  await waitAtMost(softMs, over);
  hard.abort(new AppError("stopped", "the worker stops"));
  await waitAtMost(overMs - softMs, over);
}

/** Waits so long and no longer: a database that does not answer must not keep the worker. */
async function waitAtMost(ms: number, over: Promise<unknown>): Promise<void> {
  await Promise.race([over, sleep(ms, undefined, { ref: false })]);
}

// Runs something one at a time: asked for while it runs, it runs once more after.

type SerialTask = {
  readonly request: () => void;
  /** Runs no more. Resolves when what runs is over. */
  readonly stop: () => Promise<void>;
};

/** `work` must not throw. */
function serialTask(work: () => Promise<void>): SerialTask {
  let asked = false;
  let stopped = false;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (asked && !stopped) {
      asked = false;
      await work();
    }
    running = undefined;
  }

  return {
    request() {
      asked = true;
      running ??= run();
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}
