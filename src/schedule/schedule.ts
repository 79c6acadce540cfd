// When a job is due by its cron expression and time zone, whether a tick starts it, and the timers of a worker.

import { Cron } from "croner";
import { addSeconds } from "date-fns/addSeconds";
import { max } from "date-fns/max";
import { startOfSecond } from "date-fns/startOfSecond";
import { schedule as startTimer } from "node-cron";
import type { StoredJob } from "../db/jobs/jobs.ts";

export type Schedule = { readonly schedule: string; readonly timezone: string };

/**
 * If clocks skip the time of a once-a-day schedule, it occurs at the end of the skipped hour. If they repeat its time, it occurs once. Any
 * other schedule occurs whenever the clock shows one of its times: not in the skipped hour, twice in the repeated one. Ten years of dates in
 * all zones showed one error of croner 11.0.1: in Greenland, where the skipped hour ends at midnight, no time in that hour occurs.
 */
function cronOf({ schedule, timezone }: Schedule): Cron {
  // For a time zone Node loads calendar data, which takes 13 ms, a twelfth of a short command's time. A fixed offset avoids that for UTC.
  const zone = timezone === "UTC" ? { utcOffset: 0 } : { timezone };
  return new Cron(schedule, { ...zone, domAndDow: true, paused: true });
}

/** The newest occurrence at or before `at`. The configuration refuses a schedule that never occurs. */
export function latestOccurrence(schedule: Schedule, at: Date): Date {
  // croner counts whole seconds, and searches strictly before the given time.
  return cronOf(schedule).previousRuns(1, addSeconds(startOfSecond(at), 1))[0] as Date;
}

/** The first occurrence after `after`, not at it. */
export function nextOccurrence(schedule: Schedule, after: Date): Date {
  return nextOccurrences(schedule, after, 1)[0] as Date;
}

export function nextOccurrences(schedule: Schedule, after: Date, count: number): Date[] {
  return cronOf(schedule).nextRuns(count, startOfSecond(after));
}

/** Ticks are 10 s apart. If a job has been due for this long and is not running, no worker runs, or one hangs. */
const OVERDUE_MS = 3 * 60_000;

export function overdueSince(job: Schedule, stored: StoredJob | undefined, now: Date): Date | undefined {
  const dueAt = waitingSince(job, stored, now);
  return dueAt && now.getTime() - dueAt.getTime() > OVERDUE_MS ? dueAt : undefined;
}

/** Since when a run is due: since the first scheduled time that no run covers (perhaps long ago); for a new job, since its registration. */
export function waitingSince(job: Schedule, stored: StoredJob | undefined, now: Date): Date | undefined {
  if (!stored || stored.pause) return undefined;
  const { scheduledThrough, createdAt, resumedAt } = stored;
  const dueAt = scheduledThrough ? nextOccurrence(job, scheduledThrough) : createdAt;
  // A scheduled time during a pause counts as due from the end of the pause on.
  const since = max([dueAt, resumedAt ?? dueAt]);
  return since <= now ? since : undefined;
}

/** A scheduled time longer ago than this was missed, and its run is a catch-up. Restarting a worker takes only seconds. */
const LATE_MS = 5 * 60_000;

/** The run to start now, if any. One run makes up for all missed times. A new job runs at once: its numbers do not wait for the night. */
export function planTick(job: Schedule, { scheduledThrough, pause }: StoredJob, isRunning: boolean, now: Date) {
  const latest = latestOccurrence(job, now);
  if (pause || isRunning || (scheduledThrough && latest <= scheduledThrough)) return undefined;
  const wasMissed = now.getTime() - latest.getTime() > LATE_MS;
  return { scheduledFor: latest, trigger: wasMissed ? ("catchup" as const) : ("schedule" as const) };
}

/** Keeps node-cron from writing to the console when a timer is late. */
const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

/**
 * Calls `fire` at each scheduled time and at an interval. The interval starts new jobs, which are due at once, and runs whose time the clocks skip.
 * The database decides what is due, so a call may come late or twice, or be missing. The returned function stops all timers.
 */
export function setTimers(schedules: readonly Schedule[], intervalMs: number, fire: () => void): () => void {
  const tasks = schedules.flatMap(({ schedule: expression, timezone }) => {
    try {
      return startTimer(expression, fire, { timezone, logger: SILENT, suppressMissedWarning: true });
    } catch {
      // node-cron throws if daylight saving time skips all times of the schedule, such as `30 2 * 3 0L` (the last Sunday of March) in Vienna.
      return [];
    }
  });
  const interval = setInterval(fire, intervalMs);
  return () => {
    clearInterval(interval);
    for (const task of tasks) void task.destroy();
  };
}
