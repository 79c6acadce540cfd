// The pace of a service that several processes call: the same as a process's own, kept where all of them look.

import { randomUUID } from "node:crypto";
import { batched } from "../batched.ts";
import type { Pace } from "./pace.ts";
import { openTurnLine, type TurnAnswer } from "./turn-line.ts";
import type { Sleep } from "./wait.ts";

/** Where the pace is kept: the questions and what they answer are those of the database. */
export type Turns = {
  /** An answer for each call, in their order: first come, first served. */
  readonly take: (callIds: readonly string[]) => Promise<readonly TurnAnswer[]>;
  readonly keep: (callIds: readonly string[]) => Promise<void>;
  readonly giveBack: (callIds: readonly string[]) => Promise<void>;
  readonly hold: (ms: number) => Promise<void>;
};

/** A third of the time after which a call without a sign of life loses its place. */
const KEEP_MS = 3_000;
/** More than a process makes at once. */
const TOGETHER = { weightMax: 100, weightOf: () => 1 };

export function openSharedPace(turns: Turns, waitMsMax: number, sleep: Sleep): Pace {
  const held = new Set<string>();
  const telling = new Set<Promise<void>>();
  let holding: Promise<unknown> = Promise.resolve();
  const line = openTurnLine((callIds) => turns.take(callIds), waitMsMax, sleep);
  const giveBack = batched<string, undefined>(async (callIds) => {
    await turns.giveBack(callIds);
    return callIds.map(() => undefined);
  }, TOGETHER);
  const keeping = setInterval(() => {
    if (held.size > 0) turns.keep([...held]).catch(() => {});
  }, KEEP_MS);
  keeping.unref();

  function tell(said: Promise<unknown>): void {
    const told: Promise<void> = said.then(
      () => void telling.delete(told),
      () => void telling.delete(told),
    );
    telling.add(told);
  }

  /** What the database does not hear of it finds out by itself, as nobody says that the call lives. */
  function end(callId: string): void {
    held.delete(callId);
    // After what the service asked for, or whoever gets the place would not know of it.
    tell(holding.then(() => giveBack(callId)));
  }

  return {
    async enter(signal) {
      const callId = randomUUID();
      try {
        let waitMs = await line.wait(callId, signal);
        held.add(callId);
        // Asked again after a wait, as the service may have asked for another one meanwhile.
        while (waitMs > 0) {
          await sleep(waitMs, signal);
          waitMs = await line.wait(callId, signal);
        }
      } catch (error) {
        end(callId);
        throw error;
      }
      return () => end(callId);
    },
    hold(ms) {
      holding = Promise.allSettled([holding, turns.hold(ms)]);
      tell(holding);
    },
    async close() {
      clearInterval(keeping);
      await Promise.all(telling);
    },
  };
}
