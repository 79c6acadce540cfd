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
/** A restart of the database takes less time than this, and is logged in one line once it is over. */
const OUTAGE_LOGGED_AFTER_MS = 10_000;

/** Several callers may report the same outage, any number of times: it is logged once. */
type Outage = { readonly sinceMs: number; reason: string; isLogged: boolean; timer?: NodeJS.Timeout };

/**
 * | State | Ready | After an answer | After a failure | After a connection broke |
 * | --- | --- | --- | --- | --- |
 * | `starting` | no | `reached` | `away` | `away` |
 * | `reached` | until it is silent | `reached` | `away` | `doubted` |
 * | `doubted` | until it is silent | `reached` | `away` | `doubted` |
 * | `away` | no | `reached` | `away` | `away` |
 */
type Database =
  | { readonly is: "starting" }
  | { readonly is: "reached"; readonly answeredMs: number }
  | { readonly is: "doubted"; readonly answeredMs: number; readonly outage: Outage }
  | { readonly is: "away"; readonly outage: Outage };

/** `now` is in milliseconds and never goes back. */
export function openLiveness(log: Logger, now: () => number, loggedAfterMs: number = OUTAGE_LOGGED_AFTER_MS): Liveness {
  let database: Database = { is: "starting" };
  let heartbeatMs = now();
  const isLive = () => now() - heartbeatMs <= HEARTBEAT_AGE_MS_MAX;

  function outageOf(reason: string): Outage {
    if ("outage" in database) return Object.assign(database.outage, { reason });
    const outage: Outage = { sinceMs: now(), reason, isLogged: false };
    const logBegin = () => {
      log.warn({ reason: outage.reason }, "database not reached");
      outage.isLogged = true;
    };
    // The person who starts the worker is watching its log now.
    if (database.is === "starting") logBegin();
    else outage.timer = setTimeout(logBegin, loggedAfterMs).unref();
    return outage;
  }

  function logEnd({ sinceMs, reason, isLogged, timer }: Outage): void {
    clearTimeout(timer);
    const seconds = Math.round((now() - sinceMs) / 1000);
    if (isLogged) log.info({ seconds }, "database reached again");
    else log.warn({ reason, seconds }, "database connection was lost for a short time, and works again");
  }

  return {
    reportDatabase(error) {
      if (error === undefined) {
        if ("outage" in database) logEnd(database.outage);
        database = { is: "reached", answeredMs: now() };
      } else if (isConflict(error)) {
        const reason = errorText(error);
        log.info({ reason }, "the database ended a statement that conflicted with another one; it is tried again");
      } else database = { is: "away", outage: outageOf(errorText(error)) };
    },
    reportLostConnection(error) {
      const outage = outageOf(errorText(error));
      database = "answeredMs" in database ? { ...database, is: "doubted", outage } : { is: "away", outage };
    },
    heartbeat() {
      heartbeatMs = now();
    },
    reasons() {
      if (!isLive()) return [`no tick has ended for ${Math.round((now() - heartbeatMs) / 60_000)} minutes`];
      if (database.is === "starting") return ["starting"];
      if (database.is === "away") return [database.outage.reason];
      const silentMs = now() - database.answeredMs;
      return silentMs > SILENCE_MS_MAX ? [`the database has not answered for ${Math.round(silentMs / 1000)} s`] : [];
    },
    isLive,
  };
}
