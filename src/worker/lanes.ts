// The lanes of a worker: takes work from a queue while there is a free lane, says that it lives while work is in hand, and
// gives back what it can't finish.

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { isAway } from "../db/away.ts";
import type { Queue, QueueName, Taken } from "../db/queue.ts";
import { AppError, errorCode, errorText } from "../errors.ts";

export type LaneSettings = {
  readonly queue: QueueName;
  /** How many pieces of work at once. */
  readonly places: number;
  /** How long to wait where there was nothing to take. */
  readonly idleMs: number;
  readonly work: (taken: Taken, signal: AbortSignal) => Promise<void>;
};

export type LaneDeps = {
  readonly queue: Queue;
  readonly log: Logger;
  /** The database answered, or did not and why. */
  readonly onContact: (trouble?: unknown) => void;
  /** Ends the work in hand. */
  readonly hardStop: AbortSignal;
};

export type Lanes = {
  /** There may be work. */
  readonly wake: () => void;
  /** Takes no more. Resolves when all that is in hand is finished or given back. */
  readonly drain: () => Promise<void>;
};

/** A third of the time after which the queue takes a process for dead, and a bit less. */
const TOUCH_MS = 4_000;

export function openLanes(settings: LaneSettings, deps: LaneDeps): Lanes {
  const { queue, log, onContact, hardStop } = deps;
  const inHand = new Map<string, { readonly taken: Taken; readonly over: Promise<void> }>();
  let stopping = false;
  let pause = new AbortController();
  const touching = setInterval(() => void touch(), TOUCH_MS);
  const taking = takeAll();

  async function takeAll(): Promise<void> {
    while (!stopping) {
      const free = settings.places - inHand.size;
      const taken = free > 0 ? await take(free) : [];
      for (const one of taken) start(one);
      // A full catch means there is more: as soon as a lane is free.
      const wait = taken.length < free ? sleep(settings.idleMs, undefined, { signal: pause.signal }) : aLaneIsFree();
      await wait.catch(() => {});
      pause = new AbortController();
    }
  }

  async function aLaneIsFree(): Promise<void> {
    if (inHand.size >= settings.places) await Promise.race([...inHand.values()].map(({ over }) => over));
  }

  async function take(count: number): Promise<readonly Taken[]> {
    try {
      const taken = await queue.take(settings.queue, count);
      onContact();
      return taken;
    } catch (error) {
      onContact(error);
      return [];
    }
  }

  function start(taken: Taken): void {
    const over = finish(taken).finally(() => inHand.delete(taken.id));
    inHand.set(taken.id, { taken, over });
  }

  /** Never throws: what can't be told to the queue now it finds out by itself, as nobody says that it is worked at. */
  async function finish(taken: Taken): Promise<void> {
    try {
      await settings.work(taken, hardStop);
    } catch (error) {
      const reason = errorText(error);
      if (hardStop.aborted) {
        await queue.giveBack(taken).catch(() => {});
      } else {
        if (isAway(error)) onContact(error);
        log[isAway(error) ? "debug" : "error"](
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
      await queue.touch([...inHand.values()].map(({ taken }) => taken));
      onContact();
    } catch (error) {
      onContact(error);
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
