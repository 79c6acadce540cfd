// Whether the worker does its work and reaches its database: what the health checks say, and the log once and not every second.

import type { Logger } from "pino";
import { isConflict } from "../db/transaction.ts";
import { errorText } from "../errors.ts";

export type Contact = {
  /** The database answered; or it did not, and why. */
  readonly note: (trouble?: unknown) => void;
  /** The worker got through what it does every minute, or waits for its database. */
  readonly beat: () => void;
  /** Why the worker is not ready; empty while it is. */
  readonly reasons: () => readonly string[];
  /** False where it hangs, and should be started anew. */
  readonly isLive: () => boolean;
};

/** The queue is asked every second: a worker that has not heard of its database for so long is not ready, whatever it heard last. */
const SILENCE_MS_MAX = 10_000;
/** A tick that waits for a database that comes back takes a minute or two. */
const BEAT_MS_MAX = 10 * 60_000;
const STARTING = "starting";

/** `now` is in milliseconds and never goes back. */
export function openContact(log: Logger, now: () => number): Contact {
  let heardMs: number | undefined;
  let beatMs = now();
  let trouble: string | undefined = STARTING;
  return {
    note(error) {
      if (error === undefined) {
        if (trouble !== undefined && trouble !== STARTING) log.info("database reached again");
        heardMs = now();
        trouble = undefined;
        return;
      }
      const reason = errorText(error);
      if (isConflict(error)) {
        log.info({ reason }, "the database ended a statement for the sake of another one; it is tried again");
        return;
      }
      if (trouble === undefined || trouble === STARTING) log.warn({ reason }, "database not reached");
      trouble = reason;
    },
    beat() {
      beatMs = now();
    },
    reasons() {
      if (trouble !== undefined) return [trouble];
      const silentMs = now() - (heardMs ?? now());
      return silentMs > SILENCE_MS_MAX ? [`the database has not answered for ${Math.round(silentMs / 1000)} s`] : [];
    },
    isLive: () => now() - beatMs <= BEAT_MS_MAX,
  };
}
