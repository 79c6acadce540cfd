// Whether the worker ticks and reaches its database. The health checks report it, and each outage is logged once.

import type { Logger } from "pino";
import { isConflict } from "../db/connection/errors.ts";
import { errorText } from "../errors.ts";

export type Liveness = {
  /** Called without an error when the database answered. */
  readonly reportDatabase: (error?: unknown) => void;
  /** A connection broke while nobody used it. A new one may be available at once, so the worker stays ready. */
  readonly reportLostConnection: (error: Error) => void;
  /** The worker finished a tick, or waits for its database. */
  readonly heartbeat: () => void;
  /** Why the worker is not ready; empty while it is. */
  readonly reasons: () => readonly string[];
  /** False if the worker hangs and should be restarted. */
  readonly isLive: () => boolean;
};

/** The queue is polled every second. A worker whose database was silent for longer than this is not ready. */
const SILENCE_MS_MAX = 10_000;
/** A tick that waits until the database is back takes a minute or two. */
const HEARTBEAT_AGE_MS_MAX = 10 * 60_000;
const STARTING = "starting";

/** A restart of the database takes less time than this, and is logged in one line once it is over. */
const OUTAGE_LOGGED_AFTER_MS = 10_000;

/** `now` is in milliseconds and never goes back. */
export function openLiveness(log: Logger, now: () => number, loggedAfterMs: number = OUTAGE_LOGGED_AFTER_MS): Liveness {
  const outages = openOutageLog(log, now);
  let answeredMs: number | undefined;
  let heartbeatMs = now();
  let trouble: string | undefined = STARTING;

  // The person who starts the worker is watching its log now, so the first outage is logged at once.
  const logOutage = (reason: string) => outages.begin(reason, trouble === STARTING ? 0 : loggedAfterMs);

  return {
    reportDatabase(error) {
      if (error === undefined) {
        answeredMs = now();
        trouble = undefined;
        outages.end();
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
      logOutage(reason);
      trouble = reason;
    },
    reportLostConnection: (error) => logOutage(errorText(error)),
    heartbeat() {
      heartbeatMs = now();
    },
    reasons() {
      if (trouble !== undefined) return [trouble];
      const silentMs = now() - (answeredMs ?? now());
      return silentMs > SILENCE_MS_MAX ? [`the database has not answered for ${Math.round(silentMs / 1000)} s`] : [];
    },
    isLive: () => now() - heartbeatMs <= HEARTBEAT_AGE_MS_MAX,
  };
}

type Outage = { readonly sinceMs: number; reason: string; isLogged: boolean; readonly timer: NodeJS.Timeout };

/** Several callers may report the same outage, any number of times: it is logged once. */
function openOutageLog(log: Logger, now: () => number) {
  let outage: Outage | undefined;

  function logBegin(): void {
    if (!outage || outage.isLogged) return;
    log.warn({ reason: outage.reason }, "database not reached");
    outage.isLogged = true;
  }

  return {
    begin(reason: string, afterMs: number): void {
      if (outage) {
        outage.reason = reason;
        return;
      }
      outage = { sinceMs: now(), reason, isLogged: false, timer: setTimeout(logBegin, afterMs).unref() };
      if (afterMs === 0) logBegin();
    },
    end(): void {
      if (!outage) return;
      const { sinceMs, reason, isLogged, timer } = outage;
      outage = undefined;
      clearTimeout(timer);
      const seconds = Math.round((now() - sinceMs) / 1000);
      if (isLogged) log.info({ seconds }, "database reached again");
      else log.warn({ reason, seconds }, "database connection was lost for a short time, and works again");
    },
  };
}
