// When a cron expression is due in a time zone: the moments at which the local clock shows the times that it names.

import { Cron } from "croner";
import { DAY_MS } from "../usage/days.ts";

export type Schedule = { readonly schedule: string; readonly timezone: string };

/** The local times that an expression names, as if they were in UTC; for a schedule that follows the clock, moments. */
type Timetable = { readonly cron: Cron; readonly offsetMsAt: ((atMs: number) => number) | undefined };

const SECOND_MS = 1_000;

/**
 * The newest occurrence of the schedule at or before `at`; undefined if there was none.
 *
 * Each named local time occurs once, at the first moment at which the clock shows it. When the clock is set forward, all times it
 * skips occur together at the first moment after the gap. When the clock is set back, a time that it shows twice occurs only the
 * first time. A schedule of every hour of the day means an interval and not a time of the day, so it follows what the clock shows: in
 * an hour that is shown twice it occurs twice, and skipped times do not occur.
 *
 * croner finds the named times. The changes of the clock are handled here, because no library does it in every case: croner 11.0.1 leaves out `59 23 * * *`
 * in America/Nuuk, whose gap on 2024-03-31 ends at midnight, and `0 1-23 * * *` occurs twice in Europe/Vienna on 2026-10-25. cron-parser
 * 5.10.5 has `30 2 * * *` in Europe/Vienna on 2026-03-29 at 03:30, not at 03:00, and twice on 2026-10-25 if asked at 03:00.
 */
export function latestOccurrence(schedule: Schedule, at: Date): Date | undefined {
  const { cron, offsetMsAt } = timetableOf(schedule);
  const atMs = floorToSecond(at);
  const untilMs = offsetMsAt ? latestLocalMs(offsetMsAt, atMs) : atMs;
  const [named] = cron.previousRuns(1, new Date(untilMs + SECOND_MS));
  return named && offsetMsAt ? firstMomentAt(offsetMsAt, named) : named;
}

/** The first occurrence of the schedule after `after`, not at it; undefined if there is none. */
export function nextOccurrence(schedule: Schedule, after: Date): Date | undefined {
  const { cron, offsetMsAt } = timetableOf(schedule);
  const afterMs = floorToSecond(after);
  const named = cron.nextRun(new Date(offsetMsAt ? latestLocalMs(offsetMsAt, afterMs) : afterMs)) ?? undefined;
  return named && offsetMsAt ? firstMomentAt(offsetMsAt, named) : named;
}

/** The first `count` occurrences of the schedule after `after`, fewer if there are no more. */
export function nextOccurrences(schedule: Schedule, after: Date, count: number): Date[] {
  const [next] = count > 0 ? [nextOccurrence(schedule, after)] : [];
  return next ? [next, ...nextOccurrences(schedule, next, count - 1)] : [];
}

const EVERY_HOUR = /^(?:@hourly|(?:\S+ )?\S+ (?:\*|\*\/1|0-23) \S+ \S+ \S+)$/;

// Few schedules and zones are configured, and each is used every minute.
const timetables = new Map<string, Timetable>();

function timetableOf({ schedule, timezone }: Schedule): Timetable {
  const key = `${timezone} ${schedule}`;
  const known = timetables.get(key);
  if (known) return known;
  const isLocal = timezone !== "UTC";
  const followsClock = isLocal && EVERY_HOUR.test(schedule.trim());
  const timetable = {
    cron: new Cron(schedule, { ...(followsClock ? { timezone } : { utcOffset: 0 }), domAndDow: true, paused: true }),
    offsetMsAt: isLocal && !followsClock ? offsets(timezone) : undefined,
  };
  timetables.set(key, timetable);
  return timetable;
}

function floorToSecond(moment: Date): number {
  return Math.floor(moment.getTime() / SECOND_MS) * SECOND_MS;
}

// A local time is a number here: the milliseconds at which a clock in UTC shows the same. Since 1970, two clock changes of a zone have always
// been at least a week apart, and every zone is less than a day away from UTC.

type OffsetMsAt = (atMs: number) => number;

/** How far the clocks of a zone are ahead of UTC. The Swedish format is that of ISO 8601. */
function offsets(timezone: string): OffsetMsAt {
  const format = new Intl.DateTimeFormat("sv", { timeZone: timezone, dateStyle: "short", timeStyle: "medium" });
  const read = (atMs: number) => Date.parse(`${format.format(atMs).replace(" ", "T")}Z`) - atMs;
  const known = new Map<number, number>();
  const atMidnight = (day: number) => {
    const offsetMs = known.get(day) ?? read(day * DAY_MS);
    known.set(day, offsetMs);
    return offsetMs;
  };
  return (atMs) => {
    const day = Math.floor(atMs / DAY_MS);
    const offsetMs = atMidnight(day);
    return offsetMs === atMidnight(day + 1) ? offsetMs : read(atMs);
  };
}

/** The latest local time that the clock has shown so far. After it was set back, this is a time that it will show again. */
function latestLocalMs(offsetMsAt: OffsetMsAt, atMs: number): number {
  const offsetMs = offsetMsAt(atMs);
  const beforeMs = offsetMsAt(atMs - DAY_MS);
  if (beforeMs <= offsetMs) return atMs + offsetMs;
  return Math.max(atMs + offsetMs, changeBetween(offsetMsAt, atMs - DAY_MS, atMs) - SECOND_MS + beforeMs);
}

/** The first moment at which the clock shows a local time, or has been set past it. */
function firstMomentAt(offsetMsAt: OffsetMsAt, local: Date): Date {
  const localMs = local.getTime();
  const [before, after] = [offsetMsAt(localMs - DAY_MS), offsetMsAt(localMs + DAY_MS)];
  if (before === after) return new Date(localMs - before);
  const changedAtMs = changeBetween(offsetMsAt, localMs - DAY_MS, localMs + DAY_MS);
  return new Date(localMs - before < changedAtMs ? localMs - before : Math.max(changedAtMs, localMs - after));
}

/** The first moment with another offset than at `beforeMs`, to the second: Liberia's clocks were set forward by 44 minutes and 30 seconds. */
function changeBetween(offsetMsAt: OffsetMsAt, beforeMs: number, afterMs: number): number {
  const offsetMs = offsetMsAt(beforeMs);
  let [lowMs, highMs] = [beforeMs, afterMs];
  while (highMs - lowMs > SECOND_MS) {
    const middleMs = lowMs + Math.floor((highMs - lowMs) / 2 / SECOND_MS) * SECOND_MS;
    if (offsetMsAt(middleMs) === offsetMs) lowMs = middleMs;
    else highMs = middleMs;
  }
  return highMs;
}
