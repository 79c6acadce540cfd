// The calls of this process that want a place among those that a service may get at once. They ask together, again and again
// until each has one.

import { tooLong } from "./pace.ts";
import type { Sleep } from "./wait.ts";

/** Milliseconds until the turn or until the service may be called again; of `busy`, how many places away one is. */
export type TurnAnswer = { readonly outcome: "turn" | "busy" | "held"; readonly wait: number };

/** How long to wait for each place that one is away: a call takes longer, and asking costs a statement. */
const LOOK_MS = 25;
const LOOK_MS_MAX = 250;

type Waiting = { readonly resolve: (waitMs: number) => void; readonly reject: (reason: unknown) => void };

export type TurnLine = {
  /** Resolves when the call has a place, with the milliseconds until its turn. */
  readonly wait: (callId: string, signal: AbortSignal) => Promise<number>;
};

export function openTurnLine(
  take: (callIds: readonly string[]) => Promise<readonly TurnAnswer[]>,
  waitMsMax: number,
  sleep: Sleep,
): TurnLine {
  /** In the order of their coming. */
  const line = new Map<string, Waiting>();
  let nobodyWaits = new AbortController();
  let asking = false;

  async function askForAll(): Promise<void> {
    asking = true;
    // What comes in the same moment asks along.
    await Promise.resolve();
    while (line.size > 0) {
      const pauseMs = await askOnce([...line]);
      if (line.size > 0 && pauseMs > 0) await sleep(pauseMs, nobodyWaits.signal).catch(() => {});
    }
    asking = false;
  }

  /** How long those that have no place yet had best wait. */
  async function askOnce(asked: readonly (readonly [string, Waiting])[]): Promise<number> {
    let pauseMs = Number.POSITIVE_INFINITY;
    try {
      const answers = await take(asked.map(([callId]) => callId));
      for (const [i, [callId, { resolve, reject }]] of asked.entries()) {
        const { outcome, wait } = answers[i] ?? { outcome: "busy", wait: 1 };
        const isTooLong = outcome === "held" && wait > waitMsMax;
        if (outcome === "turn") resolve(wait);
        else if (isTooLong) reject(tooLong("the service", wait, waitMsMax, { sent: "no" }));
        else pauseMs = Math.min(pauseMs, outcome === "held" ? wait : Math.min(LOOK_MS * wait, LOOK_MS_MAX));
        if (outcome === "turn" || isTooLong) line.delete(callId);
      }
    } catch (error) {
      for (const [callId, { reject }] of asked) {
        line.delete(callId);
        reject(error);
      }
    }
    return Number.isFinite(pauseMs) ? pauseMs : 0;
  }

  return {
    async wait(callId, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const leave = () => {
        line.delete(callId);
        if (line.size === 0) {
          nobodyWaits.abort();
          nobodyWaits = new AbortController();
        }
        reject(signal.reason);
      };
      line.set(callId, { resolve, reject });
      signal.addEventListener("abort", leave, { once: true });
      if (!asking) void askForAll();
      return promise.finally(() => signal.removeEventListener("abort", leave));
    },
  };
}
