// The timers of a worker: they fire at each moment of a schedule, and every minute in case one was missed. What is due is
// decided from the database, so a timer that fires late, twice or never changes nothing.

import { type ScheduledTask, schedule } from "node-cron";

export type Timers = {
  /** Rings once more after this time. */
  readonly fireIn: (ms: number) => void;
  readonly stop: () => void;
};

export type TimerSchedule = { readonly schedule: string; readonly timezone: string };

/** A moment that daylight saving skips it does not ring for: the next minute does. */
const MINUTE_MS = 60_000;
/** The library says on the console what it thinks of a late alarm. */
const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

export function setTimers(alarms: readonly TimerSchedule[], ring: () => void): Timers {
  const tasks = alarms.flatMap((alarm) => setTimer(alarm, ring) ?? []);
  const minutes = setInterval(ring, MINUTE_MS);
  let once: NodeJS.Timeout | undefined;
  return {
    fireIn(ms) {
      clearTimeout(once);
      once = setTimeout(ring, Math.max(ms, 0));
    },
    stop() {
      clearInterval(minutes);
      clearTimeout(once);
      for (const task of tasks) void task.destroy();
    },
  };
}

/** Undefined for a schedule that names no moment at all: the library throws for it. */
function setTimer({ schedule: expression, timezone }: TimerSchedule, ring: () => void): ScheduledTask | undefined {
  try {
    return schedule(expression, ring, { timezone, logger: SILENT, suppressMissedWarning: true });
  } catch {
    return undefined;
  }
}
