// The pace of a service that several processes call: the same as a process's own, kept where all of them look.

import { randomUUID } from "node:crypto";
import { type Pace, tooLong } from "./pace.ts";
import type { Sleep } from "./wait.ts";

/** Where the pace is kept: the three questions and what they answer are those of the database. */
export type Turns = {
  /** Milliseconds until the turn or until the service may be called again; of `busy`, how many places away one is. */
  readonly take: (callId: string) => Promise<{ readonly outcome: "turn" | "busy" | "held"; readonly wait: number }>;
  readonly keep: (callIds: readonly string[]) => Promise<void>;
  readonly giveBack: (callId: string) => Promise<void>;
  readonly hold: (ms: number) => Promise<void>;
};

/** A third of the time after which a call without a sign of life loses its place. */
const KEEP_MS = 3_000;
/** How long to wait for each place that one is away: a call takes longer, and asking costs a statement. */
const LOOK_MS = 25;
const LOOK_MS_MAX = 250;

export function openSharedPace(turns: Turns, waitMsMax: number, sleep: Sleep): Pace {
  const held = new Set<string>();
  const ending = new Set<Promise<void>>();
  // One call of this process asks for a place at a time: the others would only ask the same.
  let line: Promise<unknown> = Promise.resolve();
  const keeping = setInterval(() => {
    if (held.size > 0) turns.keep([...held]).catch(() => {});
  }, KEEP_MS);
  keeping.unref();

  /** Undefined while there is no place. */
  async function ask(callId: string, signal: AbortSignal): Promise<number | undefined> {
    signal.throwIfAborted();
    const { outcome, wait } = await turns.take(callId);
    if (outcome === "turn") return wait;
    if (outcome === "held" && wait > waitMsMax) throw tooLong("the service", wait, waitMsMax, { sent: "no" });
    await sleep(outcome === "held" ? wait : Math.min(LOOK_MS * wait, LOOK_MS_MAX), signal);
    return undefined;
  }

  async function untilPlaced(callId: string, signal: AbortSignal): Promise<number> {
    for (;;) {
      const waitMs = await ask(callId, signal);
      if (waitMs !== undefined) return waitMs;
    }
  }

  function inLine<T>(work: () => Promise<T>): Promise<T> {
    const next = line.then(work);
    line = next.catch(() => {});
    return next;
  }

  /** What the database does not hear of it finds out by itself, as nobody says that the call lives. */
  function end(callId: string): void {
    held.delete(callId);
    const ended = turns
      .giveBack(callId)
      .catch(() => {})
      .finally(() => ending.delete(ended));
    ending.add(ended);
  }

  return {
    async enter(signal) {
      const callId = randomUUID();
      try {
        let waitMs: number | undefined = await inLine(() => untilPlaced(callId, signal));
        held.add(callId);
        // Asked again after a wait, as the service may have asked for another one meanwhile.
        while (waitMs === undefined || waitMs > 0) {
          if (waitMs !== undefined) await sleep(waitMs, signal);
          waitMs = await ask(callId, signal);
        }
      } catch (error) {
        end(callId);
        throw error;
      }
      return () => end(callId);
    },
    hold(ms) {
      const told = turns.hold(ms).catch(() => {});
      ending.add(told);
      void told.finally(() => ending.delete(told));
    },
    async close() {
      clearInterval(keeping);
      await Promise.all(ending);
    },
  };
}
