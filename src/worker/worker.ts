// The worker: plans at every tick, works at what is queued, and gives back what it can't finish when it has to stop.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import os from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type App, originOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import { forgetOldRuns } from "../db/runs.ts";
import { resumeCalls } from "../db/service-pace.ts";
import { endLostRuns, touchSharedRuns } from "../db/shared-runs.ts";
import { forgetOldWorkers, heartbeatWorker, markWorkerStopped, type NewWorker, storedWorkers } from "../db/workers.ts";
import { AppError } from "../errors.ts";
import { openClockWatch } from "../jobs/follow-clock.ts";
import type { Receivers } from "../jobs/receivers.ts";
import type { ProcessMetrics } from "../monitor/process-metrics.ts";
import { programVersion } from "../package-files.ts";
import { setAlarms } from "../schedule/alarms.ts";
import type { Contact } from "./contact.ts";
import { featuresByRun } from "./features-by-run.ts";
import { type LaneSettings, type Lanes, openLanes } from "./lanes.ts";
import { openNotifier } from "./notify.ts";
import { onceReached, openWorld } from "./open-world.ts";
import { tellRunEnded } from "./run-ended.ts";
import { singleFlight } from "./single-flight.ts";
import { tick } from "./tick.ts";
import { bury, workAtRequest } from "./work-request.ts";
import { workAtRotation } from "./work-rotation.ts";
import type { WorkerWorld } from "./world.ts";

/** Of the time there is to stop in, so much is for giving back what could not be finished, and so much for taking leave. */
const GIVE_BACK_MS = 2_000;
const LEAVE_MS = 2_000;
const CLOSE_MS_MAX = 500;
/** What was due at a tick that lost its database does not wait for the next minute. */
const TICK_AGAIN_MS = 5_000;
const DAY_MS = 24 * 60 * 60 * 1000;

type WorkerDeps = {
  readonly contact: Contact;
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
  const world = await onceReached(app, contact, app.signal, () => openWorld(workApp, config, db, metrics));
  // Apart from opening, which must not be done a second time if the database is lost here.
  await onceReached(app, contact, app.signal, async () => {
    await forgetOldWorkers(db);
    await endPauseWhereAlone(world);
    await heartbeatWorker(db, worker);
    await onReady?.();
  });
  app.log.info({ jobs: config.exports.length, rotations: config.rotations.length }, "worker started");
  const lanes = openAllLanes(world, contact, hard.signal);
  const notices = singleFlight(openNotifier(world, receivers, app.signal).tick);
  const stopTicking = startTicking(world, worker, contact, {
    onWork: () => lanes.forEach((one) => void one.wake()),
    onOver: notices.ask,
  });
  try {
    if (!app.signal.aborted) await once(app.signal, "abort");
    app.log.info("worker stops: no new work is taken");
  } finally {
    const over = Promise.all([stopTicking(), notices.stop(), ...lanes.map((one) => one.drain())]);
    await drain(over, hard, config.worker.drainSeconds * 1000);
    const goodbye = markWorkerStopped(db, worker.workerId);
    await within(CLOSE_MS_MAX, Promise.allSettled([goodbye, world.queue.stop(), world.service.close()]));
    app.log.info("worker stopped");
  }
}

/** A person who restarts the only worker wants it to work: the reason for the pause may long be gone. */
async function endPauseWhereAlone({ app, config, db }: WorkerWorld): Promise<void> {
  const others = await storedWorkers(db);
  if (others.some(({ recent, stoppedAt }) => recent && !stoppedAt)) return;
  const until = await resumeCalls(db, originOf(config));
  if (until) app.log.info({ until }, "calls to the service go on: their pause ended with the start of the only worker");
}

function openAllLanes(world: WorkerWorld, contact: Contact, hardStop: AbortSignal): readonly Lanes[] {
  const { queue, service, config } = world;
  const features = featuresByRun(world, () => service.forgetRefusals());
  const requests = (places: number): LaneSettings => ({
    queue: "usage_request",
    places,
    idleMs: 1_000,
    work: (taken, signal) => workAtRequest(world, features, taken, signal),
  });
  const settings: readonly LaneSettings[] = [
    // Twice as many as may call at once: while the answers of some are stored the others call.
    requests(2 * config.service.maxConcurrent),
    { queue: "usage_request_dead", places: 1, idleMs: 5_000, work: (taken) => bury(world, taken) },
    { queue: "rotation", places: 1, idleMs: 2_000, work: (taken) => workAtRotation(world, taken) },
  ];
  return settings.map((one) => openLanes(one, { queue, log: world.app.log, onContact: contact.note, hardStop }));
}

type OnTick = {
  /** There is new work. */
  readonly onWork: () => void;
  /** What was due is decided, or could not be. */
  readonly onOver: () => void;
};

function startTicking(
  world: WorkerWorld,
  worker: NewWorker,
  contact: Contact,
  { onWork, onOver }: OnTick,
): () => Promise<void> {
  const { app, config, db, metrics } = world;
  let forgotMs = Number.NEGATIVE_INFINITY;
  const forgetDaily = async () => {
    if (performance.now() - forgotMs < DAY_MS) return;
    const forgotten = await forgetOldRuns(db, config.runs.keepDays, new Date());
    forgotMs = performance.now();
    if (forgotten.runs + forgotten.keyEvents > 0) app.log.info(forgotten, "old runs deleted");
  };
  const watchClock = openClockWatch(app, db);
  const ticks = singleFlight(async () => {
    const startedMs = performance.now();
    try {
      await watchClock();
      const { began, wakeInMs } = await tick(world);
      metrics.ticked((performance.now() - startedMs) / 1000);
      if (began) onWork();
      if (wakeInMs !== undefined) alarms.ringIn(wakeInMs);
      await heartbeatWorker(db, worker);
      await touchSharedRuns(db);
      for (const end of await endLostRuns(db)) tellRunEnded(world, { ...end, kind: "export" });
      await forgetDaily();
      app.log.debug({ began, wakeInMs }, "tick over");
    } catch (error) {
      contact.note(error);
      alarms.ringIn(TICK_AGAIN_MS);
    }
    contact.beat();
    onOver();
  });
  const alarms = setAlarms([...config.exports, ...config.rotations], ticks.ask);
  ticks.ask();
  return async () => {
    alarms.stop();
    await ticks.stop();
  };
}

/** What is in hand may end by itself, and is ended then. */
async function drain(over: Promise<unknown>, hard: AbortController, drainMs: number): Promise<void> {
  const overMs = Math.max(drainMs - LEAVE_MS, drainMs / 2);
  const softMs = Math.max(overMs - GIVE_BACK_MS, overMs / 2);
  await within(softMs, over);
  hard.abort(new AppError("stopped", "the worker stops"));
  await within(overMs - softMs, over);
}

/** Waits so long and no longer: a database that does not answer must not keep the worker. */
async function within(ms: number, over: Promise<unknown>): Promise<void> {
  await Promise.race([over, sleep(ms, undefined, { ref: false })]);
}
