// The pace of a service that several processes call: the same as a process's own, kept where all of them look.

import { randomUUID } from "node:crypto";
import type { Pace } from "./pace.ts";
import { openTurnLine, type TakeTurns, type TellOfWait } from "./turn-line.ts";
import type { Sleep } from "./wait.ts";

/** Where the pace is kept: the questions and what they answer are those of the database. */
export type Turns = {
  readonly take: TakeTurns;
  readonly keep: (callIds: readonly string[]) => Promise<void>;
  readonly hold: (ms: number) => Promise<void>;
};

/** A third of the time after which a call without a sign of life loses its place. */
const KEEP_MS = 3_000;

export function openSharedPace(
  turns: Turns,
  waitMsMax: number,
  now: () => number,
  sleep: Sleep,
  tell?: TellOfWait,
): Pace {
  let holding: Promise<unknown> = Promise.resolve();
  // After what the service asked for, or turns would be given that are void.
  const take: TakeTurns = (calls) => holding.then(() => turns.take(calls));
  const line = openTurnLine(take, waitMsMax, now, sleep, tell);
  const telling = new Set<Promise<void>>();
  const keeping = setInterval(() => {
    if (line.places.size > 0) turns.keep([...line.places]).catch(() => {});
  }, KEEP_MS);
  keeping.unref();

  /** What the database does not hear of it finds out by itself, as nobody says that the call lives. */
  function end(name: string): void {
    const told: Promise<void> = line.end(name).finally(() => telling.delete(told));
    telling.add(told);
  }

  return {
    async enter(signal) {
      let name: string = randomUUID();
      try {
        for (;;) {
          const place = await line.wait(name, signal);
          name = place.name;
          if (place.waitMs <= 0) return () => end(place.name);
          // Asked again after it, as the service may have asked for another wait meanwhile.
          await sleep(place.waitMs, signal);
        }
      } catch (error) {
        end(name);
        throw error;
      }
    },
    hold(ms) {
      line.forgetAhead();
      holding = Promise.allSettled([holding, turns.hold(ms)]);
    },
    async close() {
      clearInterval(keeping);
      line.close();
      await holding;
      await Promise.all(telling);
    },
  };
}
