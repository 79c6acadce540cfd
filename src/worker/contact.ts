// Whether the worker reaches its database: what the health checks say, and the log once and not every second.

import type { Logger } from "pino";
import { errorText } from "../errors.ts";

export type Contact = {
  /** The database answered; or it did not, and why. */
  readonly note: (trouble?: unknown) => void;
  /** Why the worker is not ready; empty while it is. */
  readonly reasons: () => readonly string[];
};

const STARTING = "starting";
/** A worker that has not heard of its database for so long is not ready, whatever it heard last. */
const SILENCE_MS_MAX = 30_000;

export function openContact(log: Logger, now: () => number): Contact {
  let heardMs: number | undefined;
  let trouble: string | undefined = STARTING;
  return {
    note(error) {
      if (error === undefined) {
        if (heardMs !== undefined && trouble !== undefined) log.info("database reached again");
        heardMs = now();
        trouble = undefined;
        return;
      }
      const reason = errorText(error);
      if (trouble === undefined || trouble === STARTING) log.warn({ reason }, "database not reached");
      trouble = reason;
    },
    reasons() {
      if (trouble !== undefined) return [trouble];
      if (heardMs !== undefined && now() - heardMs > SILENCE_MS_MAX) return ["the database has been silent"];
      return [];
    },
  };
}
