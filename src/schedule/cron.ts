// When a cron expression is due in a time zone, and the timers that fire then.

import { Cron } from "croner";
import { schedule } from "node-cron";

export type Schedule = { readonly schedule: string; readonly timezone: string };

const SECOND_MS = 1_000;

// Few schedules and zones are configured, and each is used at every tick.
const crons = new Map<string, Cron>();

/**
 * A local time that the clock skips occurs at the first moment after the gap, and one that it shows twice occurs the first time. A schedule of
 * several hours follows what the clock shows. croner 11.0.1, over ten years and all zones, leaves out one case: in Greenland, where a gap ends
 * at midnight, the times from 23:00 on do not occur that night.
 */
function cronOf({ schedule, timezone }: Schedule): Cron {
  const key = `${timezone} ${schedule}`;
  const cron = crons.get(key) ?? new Cron(schedule, { ...clockOf(timezone), domAndDow: true, paused: true });
  crons.set(key, cron);
  return cron;
}

/** A time zone makes Node load its calendars, which takes 13 ms, a twelfth of a short command. UTC needs none. */
function clockOf(timezone: string): { readonly timezone: string } | { readonly utcOffset: number } {
  return timezone === "UTC" ? { utcOffset: 0 } : { timezone };
}

/** The newest occurrence of the schedule at or before `at`; undefined if there was none. */
export function latestOccurrence(schedule: Schedule, at: Date): Date | undefined {
  return cronOf(schedule).previousRuns(1, new Date(floorToSecond(at) + SECOND_MS))[0];
}

/** The first occurrence of the schedule after `after`, not at it; undefined if there is none. */
export function nextOccurrence(schedule: Schedule, after: Date): Date | undefined {
  return nextOccurrences(schedule, after, 1)[0];
}

/** The first `count` occurrences of the schedule after `after`, fewer if there are no more. */
export function nextOccurrences(schedule: Schedule, after: Date, count: number): Date[] {
  return cronOf(schedule).nextRuns(count, new Date(floorToSecond(after)));
}

function floorToSecond(moment: Date): number {
  return Math.floor(moment.getTime() / SECOND_MS) * SECOND_MS;
}

/** The library writes to the console when a timer is late. */
const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

/**
 * Calls `fire` at each scheduled time, and at an interval: for what is due without a schedule, and for times that daylight saving time skips.
 * The database decides what is due, so a timer may fire late, twice or never. Returns a function that stops the timers.
 */
export function setTimers(schedules: readonly Schedule[], intervalMs: number, fire: () => void): () => void {
  const tasks = schedules.flatMap(({ schedule: expression, timezone }) => {
    try {
      return schedule(expression, fire, { timezone, logger: SILENT, suppressMissedWarning: true });
    } catch {
      // The schedule never occurs, such as `0 0 L * 1#1`.
      return [];
    }
  });
  const interval = setInterval(fire, intervalMs);
  return () => {
    clearInterval(interval);
    for (const task of tasks) void task.destroy();
  };
}
