// Whether the worker ticks and reaches its database: for the health checks, and logged once for each outage.

import type { Logger } from "pino";
import { isConflict } from "../db/connection/errors.ts";
import { errorText } from "../errors.ts";

export type Liveness = {
  /** The database answered; or it did not, and why. */
  readonly reportDatabase: (trouble?: unknown) => void;
  /** A connection broke while nobody used it. A new one may be available at once, so the worker stays ready. */
  readonly reportLostConnection: (error: Error) => void;
  /** The worker got through what it does every minute, or waits for its database. */
  readonly heartbeat: () => void;
  /** Why the worker is not ready; empty while it is. */
  readonly reasons: () => readonly string[];
  /** False where it hangs, and should be started anew. */
  readonly isLive: () => boolean;
};

/** The queue is asked every second: a worker that has not heard of its database for so long is not ready, whatever it heard last. */
const SILENCE_MS_MAX = 10_000;
/** A tick that waits for a database that comes back takes a minute or two. */
const HEARTBEAT_AGE_MS_MAX = 10 * 60_000;
const STARTING = "starting";

/** A restart of the database takes less time than this, and is logged in one line when it is over. */
const OUTAGE_LOGGED_AFTER_MS = 10_000;

type Outage = { readonly sinceMs: number; reason: string; isLogged: boolean; readonly timer: NodeJS.Timeout };

/** `now` is in milliseconds and never goes back. */
export function openLiveness(log: Logger, now: () => number, toldAfterMs: number = OUTAGE_LOGGED_AFTER_MS): Liveness {
  let heardMs: number | undefined;
  let beatMs = now();
  let trouble: string | undefined = STARTING;
  let outage: Outage | undefined;

  /** Several callers may report the same outage, any number of times. */
  function beginOutage(reason: string): void {
    if (outage) {
      outage.reason = reason;
      return;
    }
    // The person who starts the worker is watching its log now, so the outage is logged at once.
    const waitMs = trouble === STARTING ? 0 : toldAfterMs;
    outage = { sinceMs: now(), reason, isLogged: false, timer: setTimeout(tellOutage, waitMs).unref() };
    if (waitMs === 0) tellOutage();
  }

  function tellOutage(): void {
    if (outage && !outage.isLogged) log.warn({ reason: outage.reason }, "database not reached");
    if (outage) outage.isLogged = true;
  }

  function endOutage(): void {
    if (!outage) return;
    const { sinceMs, reason, isLogged, timer } = outage;
    outage = undefined;
    clearTimeout(timer);
    const seconds = Math.round((now() - sinceMs) / 1000);
    if (isLogged) log.info({ seconds }, "database reached again");
    else log.warn({ reason, seconds }, "database was away for a moment, and is reached again");
  }

  return {
    reportDatabase(error) {
      if (error === undefined) {
        heardMs = now();
        trouble = undefined;
        endOutage();
        return;
      }
      const reason = errorText(error);
      if (isConflict(error)) {
        log.info(
          { reason },
          "the database ended a statement that conflicted with another one; the statement is tried again",
        );
        return;
      }
      beginOutage(reason);
      trouble = reason;
    },
    reportLostConnection: (error) => beginOutage(errorText(error)),
    heartbeat() {
      beatMs = now();
    },
    reasons() {
      if (trouble !== undefined) return [trouble];
      const silentMs = now() - (heardMs ?? now());
      return silentMs > SILENCE_MS_MAX ? [`the database has not answered for ${Math.round(silentMs / 1000)} s`] : [];
    },
    isLive: () => now() - beatMs <= HEARTBEAT_AGE_MS_MAX,
  };
}
