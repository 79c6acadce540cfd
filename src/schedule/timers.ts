// The timers of a worker: they fire at each scheduled time, and every minute in case one was missed. What is due is decided by what the
// database contains, so a timer that fires late, twice or never does no harm.

import { type ScheduledTask, schedule } from "node-cron";
import type { Schedule } from "./cron.ts";

export type Timers = {
  /** Fires once more after this time. Replaces an earlier request. */
  readonly fireIn: (ms: number) => void;
  readonly stop: () => void;
};

/** The timer of every minute is also for times that daylight saving time skips: the library does not fire for them. */
const MINUTE_MS = 60_000;
/** The library writes to the console when a timer is late. */
const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

export function setTimers(schedules: readonly Schedule[], fire: () => void): Timers {
  const tasks = schedules.flatMap((one) => setTimer(one, fire) ?? []);
  const minutes = setInterval(fire, MINUTE_MS);
  let once: NodeJS.Timeout | undefined;
  return {
    fireIn(ms) {
      clearTimeout(once);
      once = setTimeout(fire, Math.max(ms, 0));
    },
    stop() {
      clearInterval(minutes);
      clearTimeout(once);
      for (const task of tasks) void task.destroy();
    },
  };
}

/** Undefined for a schedule that never occurs, such as `0 0 L * 1#1`: the library throws for it. */
function setTimer({ schedule: expression, timezone }: Schedule, fire: () => void): ScheduledTask | undefined {
  try {
    return schedule(expression, fire, { timezone, logger: SILENT, suppressMissedWarning: true });
  } catch {
    return undefined;
  }
}
