// A consumer: claims queue jobs one after the other, renews their heartbeat, and releases what it can't finish.

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { isConnectionError } from "../db/connection/errors.ts";
import type { ClaimedJob, Queue } from "../db/jobs/queue.ts";
import type { QueueName } from "../db/jobs/queue-names.ts";
import { errorCode, errorText, unexpectedStack } from "../errors.ts";

export type ConsumerSettings = {
  readonly queue: QueueName;
  /** How long to wait when the queue is empty. */
  readonly idleMs: number;
  readonly handle: (job: ClaimedJob, handling: Handling) => Promise<void>;
};

export type Handling = {
  /** Aborts the work. */
  readonly signal: AbortSignal;
  /** Aborted when the worker stops: the requests in flight should still be completed, and the rest of the job be released. */
  readonly stopping: AbortSignal;
  /** To be called as soon as the next job can be claimed. Without that call, the next job is claimed when this one has been handled. */
  readonly onReady: () => void;
};

export type ConsumerDeps = {
  readonly queue: Queue;
  readonly log: Logger;
  /** Called without an error when the database answered. */
  readonly reportDatabase: (error?: unknown) => void;
  /** Aborts the jobs that are being handled. */
  readonly hardStop: AbortSignal;
};

export type Consumer = {
  /** Claims at once instead of waiting for `idleMs`: there may be new jobs. */
  readonly wake: () => void;
  /** Claims no more. Resolves when all claimed jobs are finished or released. */
  readonly drain: () => Promise<void>;
};

/** Under a third of the time without a heartbeat after which the queue gives a job to another process. */
const HEARTBEAT_MS = 4_000;

export function openConsumer(settings: ConsumerSettings, deps: ConsumerDeps): Consumer {
  const { queue, log, reportDatabase, hardStop } = deps;
  const handled = new Map<ClaimedJob, Promise<void>>();
  const stop = new AbortController();
  let wakeUp = new AbortController();
  const heartbeats = setInterval(() => void heartbeat(), HEARTBEAT_MS);
  const claiming = claimUntilStopped();

  async function claimUntilStopped(): Promise<void> {
    while (!stop.signal.aborted) {
      const job = await claim();
      if (job) await start(job);
      else await sleep(settings.idleMs, undefined, { signal: wakeUp.signal }).catch(() => {});
      wakeUp = new AbortController();
    }
  }

  async function claim(): Promise<ClaimedJob | undefined> {
    try {
      const [job] = await queue.claim(settings.queue, 1);
      reportDatabase();
      return job;
    } catch (error) {
      reportDatabase(error);
      return undefined;
    }
  }

  /** Resolves when the next job can be claimed. */
  function start(job: ClaimedJob): Promise<void> {
    const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
    const over = handle(job, onReady).finally(() => {
      handled.delete(job);
      onReady();
    });
    handled.set(job, over);
    return ready;
  }

  /** Never throws. If a failure can't be recorded in the queue, another process claims the job after its heartbeats stopped. */
  async function handle(job: ClaimedJob, onReady: () => void): Promise<void> {
    try {
      await settings.handle(job, { signal: hardStop, stopping: stop.signal, onReady });
    } catch (error) {
      if (hardStop.aborted) {
        await queue.release(job).catch(() => {});
        return;
      }
      const failure = { reason: errorText(error), code: errorCode(error) };
      const isAway = isConnectionError(error);
      if (isAway) reportDatabase(error);
      log[isAway ? "debug" : "error"](
        { queue: settings.queue, ...failure, stack: unexpectedStack(error) },
        "queue job failed, to be tried again",
      );
      await queue.fail(job, failure).catch(() => {});
    }
  }

  async function heartbeat(): Promise<void> {
    if (handled.size === 0) return;
    try {
      await queue.heartbeat([...handled.keys()]);
      reportDatabase();
    } catch (error) {
      reportDatabase(error);
    }
  }

  return {
    wake: () => wakeUp.abort(),
    async drain() {
      stop.abort();
      wakeUp.abort();
      await claiming;
      await Promise.all(handled.values());
      clearInterval(heartbeats);
    },
  };
}
