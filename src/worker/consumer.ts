// A consumer: claims queue jobs while it has capacity, renews their heartbeat, and releases what it can't finish.

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { isConnectionError } from "../db/connection/errors.ts";
import type { ClaimedJob, Queue, QueueName } from "../db/jobs/queue.ts";
import { AppError, errorCode, errorText } from "../errors.ts";

export type ConsumerSettings = {
  readonly queue: QueueName;
  /** How many pieces of work at once. */
  readonly concurrency: number;
  /** How long to wait where there was nothing to take. */
  readonly idleMs: number;
  readonly handle: (taken: ClaimedJob, signal: AbortSignal) => Promise<void>;
};

export type ConsumerDeps = {
  readonly queue: Queue;
  readonly log: Logger;
  /** The database answered, or did not and why. */
  readonly reportDatabase: (trouble?: unknown) => void;
  /** Ends the work in hand. */
  readonly hardStop: AbortSignal;
};

export type Consumer = {
  /** There may be work. */
  readonly wake: () => void;
  /** Takes no more. Resolves when all that is in hand is finished or given back. */
  readonly drain: () => Promise<void>;
};

/** A third of the time after which the queue takes a process for dead, and a bit less. */
const HEARTBEAT_MS = 4_000;

export function openConsumer(settings: ConsumerSettings, deps: ConsumerDeps): Consumer {
  const { queue, log, reportDatabase, hardStop } = deps;
  const inHand = new Map<string, { readonly taken: ClaimedJob; readonly over: Promise<void> }>();
  let stopping = false;
  let pause = new AbortController();
  const touching = setInterval(() => void touch(), HEARTBEAT_MS);
  const taking = takeAll();

  async function takeAll(): Promise<void> {
    while (!stopping) {
      const free = settings.concurrency - inHand.size;
      const taken = free > 0 ? await take(free) : [];
      for (const one of taken) start(one);
      // A full catch means there is more: as soon as a lane is free.
      const wait = taken.length < free ? sleep(settings.idleMs, undefined, { signal: pause.signal }) : aLaneIsFree();
      await wait.catch(() => {});
      pause = new AbortController();
    }
  }

  async function aLaneIsFree(): Promise<void> {
    if (inHand.size >= settings.concurrency) await Promise.race([...inHand.values()].map(({ over }) => over));
  }

  async function take(count: number): Promise<readonly ClaimedJob[]> {
    try {
      const taken = await queue.claim(settings.queue, count);
      reportDatabase();
      return taken;
    } catch (error) {
      reportDatabase(error);
      return [];
    }
  }

  function start(taken: ClaimedJob): void {
    const over = finish(taken).finally(() => inHand.delete(taken.id));
    inHand.set(taken.id, { taken, over });
  }

  /** Never throws: what can't be told to the queue now it finds out by itself, as nobody says that it is worked at. */
  async function finish(taken: ClaimedJob): Promise<void> {
    try {
      await settings.handle(taken, hardStop);
    } catch (error) {
      const reason = errorText(error);
      if (hardStop.aborted) {
        await queue.release(taken).catch(() => {});
      } else {
        if (isConnectionError(error)) reportDatabase(error);
        log[isConnectionError(error) ? "debug" : "error"](
          { queue: settings.queue, code: errorCode(error), reason, stack: stackOf(error) },
          "work failed, to be tried again",
        );
        await queue.fail(taken, { reason, code: errorCode(error) }).catch(() => {});
      }
    }
  }

  async function touch(): Promise<void> {
    if (inHand.size === 0) return;
    try {
      await queue.heartbeat([...inHand.values()].map(({ taken }) => taken));
      reportDatabase();
    } catch (error) {
      reportDatabase(error);
    }
  }

  return {
    wake: () => pause.abort(),
    async drain() {
      stopping = true;
      pause.abort();
      await taking;
      await Promise.all([...inHand.values()].map(({ over }) => over));
      clearInterval(touching);
    },
  };
}

/** Of a mistake of this program, where it is. */
function stackOf(error: unknown): string | undefined {
  return error instanceof Error && !(error instanceof AppError) ? error.stack : undefined;
}
