// Whether the worker ticks and reaches its database. The health checks report it, and each outage is logged once.

import type { Logger } from "pino";
import { isConflict } from "../db/connection/errors.ts";
import { errorText } from "../errors.ts";

export type Liveness = ReturnType<typeof openLiveness>;

/** The queue is polled every few seconds. If the database has been silent for longer than this, the worker is not ready. */
const SILENCE_MS_MAX = 15_000;
/** Far longer than a tick takes, even one that waits a minute or two for the database. */
const HEARTBEAT_AGE_MS_MAX = 10 * 60_000;

/** `now` is in milliseconds and never goes back. */
export function openLiveness(log: Logger, now: () => number) {
  let answeredMs: number | undefined;
  let outage: { readonly sinceMs: number; readonly reason: string } | undefined;
  let heartbeatMs = now();
  let tickError: unknown;
  const isLive = () => now() - heartbeatMs <= HEARTBEAT_AGE_MS_MAX;
  return {
    /** Called without an error when the database answered. Several callers may report the same outage, any number of times. */
    reportDatabase(error?: unknown): void {
      const reason = errorText(error);
      if (error === undefined) {
        if (outage) log.info({ seconds: Math.round((now() - outage.sinceMs) / 1000) }, "database reached again");
        outage = undefined;
        answeredMs = now();
      } else if (isConflict(error)) {
        log.info({ reason }, "the database ended a statement that conflicted with another one; it is tried again");
      } else {
        if (!outage) log.warn({ reason }, "database not reached");
        outage = { sinceMs: outage?.sinceMs ?? now(), reason };
      }
    },
    /** Called after each tick, and while the worker waits for its database. `error`: why the tick failed, unless the database was not reached. */
    heartbeat(error?: unknown): void {
      heartbeatMs = now();
      tickError = error;
    },
    /** Why the worker is not ready; empty while it is. */
    reasons(): readonly string[] {
      if (!isLive()) return [`no tick has ended for ${Math.round((now() - heartbeatMs) / 60_000)} minutes`];
      if (outage) return [outage.reason];
      if (tickError !== undefined) return [`the newest tick failed: ${errorText(tickError)}`];
      if (answeredMs === undefined) return ["starting"];
      const silentMs = now() - answeredMs;
      return silentMs > SILENCE_MS_MAX ? [`the database has not answered for ${Math.round(silentMs / 1000)} s`] : [];
    },
    /** False if the worker seems to hang and should be restarted. */
    isLive,
  };
}
