// Limits how fast one process calls the service: slots (calls in flight), permits (calls a second) and the pause a service asks for.

import type { Sleep } from "../async.ts";
import { AppError } from "../errors.ts";

export type PaceSettings = {
  readonly requestsPerSecond: number;
  readonly maxConcurrent: number;
  /** The longest wait that the service may ask for before calls are given up instead. */
  readonly waitMsMax: number;
};

export type Pace = {
  /** Resolves when a request may start, with what has to be called when it is over. */
  readonly enter: (signal: AbortSignal) => Promise<() => void>;
  /** No request starts in the next `ms`. A shorter wait does not end a longer one. */
  readonly hold: (ms: number) => void;
  /** Resolves when all is told to whoever keeps the pace. */
  readonly close: () => Promise<void>;
};

/** `now` is in milliseconds and never goes back, unlike the time of day. */
export function openPace(settings: PaceSettings, now: () => number, sleep: Sleep): Pace {
  const places = openPlaces(settings.maxConcurrent);
  const intervalMs = 1000 / settings.requestsPerSecond;
  let heldUntilMs = Number.NEGATIVE_INFINITY;
  let nextMs = Number.NEGATIVE_INFINITY;

  async function turn(signal: AbortSignal): Promise<void> {
    let startMs: number | undefined;
    for (;;) {
      const nowMs = now();
      if (heldUntilMs - nowMs > settings.waitMsMax)
        throw tooLong("the service", heldUntilMs - nowMs, settings.waitMsMax, { sent: "no" });
      if (heldUntilMs > nowMs) {
        await sleep(heldUntilMs - nowMs, signal);
      } else if (startMs === undefined) {
        // Taken once, so that waiting again for the service does not use up a second turn.
        startMs = Math.max(nextMs, nowMs);
        nextMs = startMs + intervalMs;
      } else if (startMs > nowMs) {
        await sleep(startMs - nowMs, signal);
      } else {
        return;
      }
    }
  }

  return {
    async enter(signal) {
      await places.take(signal);
      try {
        await turn(signal);
      } catch (error) {
        places.give();
        throw error;
      }
      return () => places.give();
    },
    hold(ms) {
      heldUntilMs = Math.max(heldUntilMs, now() + ms);
    },
    async close() {},
  };
}

/** The error for a wait that is not waited out; it is never shortened instead. */
export function tooLong(who: string, askedMs: number, waitMsMax: number, details: AppError["details"]): AppError {
  const askedSeconds = Math.ceil(askedMs / 1000);
  const message = `${who} asks to be called again in ${askedSeconds} s, and at most ${waitMsMax / 1000} s are waited`;
  return new AppError("rate_limited", message, { details: { ...details, askedSeconds } });
}

/** First come, first served. */
function openPlaces(count: number): { take: (signal: AbortSignal) => Promise<void>; give: () => void } {
  const waiting = new Set<() => void>();
  let free = count;

  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free--;
        return;
      }
      await new Promise<void>((resolve, reject) => {
        const start = () => {
          signal.removeEventListener("abort", stop);
          resolve();
        };
        const stop = () => {
          waiting.delete(start);
          reject(signal.reason);
        };
        waiting.add(start);
        signal.addEventListener("abort", stop, { once: true });
      });
    },
    give() {
      const [next] = waiting;
      if (next === undefined) {
        free++;
      } else {
        waiting.delete(next);
        next();
      }
    },
  };
}
