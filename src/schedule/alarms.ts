// The alarm clock of a worker: rings when a job's moment comes, and every minute in case one was slept through. What is due
// then is decided elsewhere, from what the database knows: an alarm that is late, missed or doubled changes nothing.

import { type ScheduledTask, schedule } from "node-cron";

export type Alarms = {
  /** Rings once more after this time. */
  readonly ringIn: (ms: number) => void;
  readonly stop: () => void;
};

export type Alarm = { readonly schedule: string; readonly timezone: string };

/** A moment that daylight saving skips it does not ring for: the next minute does. */
const EVERY_MS = 60_000;
/** The library says on the console what it thinks of a late alarm. */
const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

export function setAlarms(alarms: readonly Alarm[], ring: () => void): Alarms {
  const tasks = alarms.flatMap((alarm) => setAlarm(alarm, ring) ?? []);
  const minutes = setInterval(ring, EVERY_MS);
  let once: NodeJS.Timeout | undefined;
  return {
    ringIn(ms) {
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
function setAlarm({ schedule: expression, timezone }: Alarm, ring: () => void): ScheduledTask | undefined {
  try {
    return schedule(expression, ring, { timezone, logger: SILENT, suppressMissedWarning: true });
  } catch {
    return undefined;
  }
}
