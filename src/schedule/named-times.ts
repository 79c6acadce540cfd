// The local times that a cron expression names. A local time is a number here: the milliseconds at which a clock in UTC
// shows the same, so time zones have no part in it.

import { createTask, type ParsedFields, parse } from "node-cron";
import { DAY_MS, SECOND_MS } from "./local-clock.ts";

export type NamedTimes = {
  readonly everyHour: boolean;
  /** The first at or after a local time; undefined where none comes in 40 years. */
  readonly firstFrom: (localMs: number) => number | undefined;
  /** The last at or before a local time; undefined where none was in 40 years. */
  readonly lastUntil: (localMs: number) => number | undefined;
};

/** What comes at all comes again after 40 years at the latest: a 29 February on a given weekday, where 2100 lies between. */
const REACH_DAYS = 40 * 365.25;

export function parseTimes(expression: string): NamedTimes {
  const fields = parse(expression);
  const times = timesOfDay(fields);
  const isNamed = dayMatcher(expression, fields, times[0] ?? 0);
  return {
    everyHour: new Set(fields.hour).size === 24,
    firstFrom(localMs) {
      const today = Math.floor(localMs / DAY_MS);
      for (let day = today; day <= today + REACH_DAYS; day++) {
        if (!isNamed(day)) continue;
        const timeMs = times.find((timeMs) => day * DAY_MS + timeMs >= localMs);
        if (timeMs !== undefined) return day * DAY_MS + timeMs;
      }
      return undefined;
    },
    lastUntil(localMs) {
      const today = Math.floor(localMs / DAY_MS);
      for (let day = today; day >= today - REACH_DAYS; day--) {
        if (!isNamed(day)) continue;
        const timeMs = times.findLast((timeMs) => day * DAY_MS + timeMs <= localMs);
        if (timeMs !== undefined) return day * DAY_MS + timeMs;
      }
      return undefined;
    },
  };
}

/** As milliseconds after midnight, the earliest first. */
function timesOfDay({ hour, minute, second }: ParsedFields): number[] {
  const [hours, minutes, seconds] = [sorted(hour), sorted(minute), sorted(second)];
  return hours.flatMap((h) => minutes.flatMap((m) => seconds.map((s) => ((h * 60 + m) * 60 + s) * SECOND_MS)));
}

function sorted(numbers: readonly number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/**
 * Tells of a day, counted from 1970-01-01, whether it is named: by its month, its day of the month and its weekday, all three.
 * Fields of numbers are read here; for words such as "L", "15W" or "1#2" the library is asked.
 */
function dayMatcher(expression: string, fields: ParsedFields, timeMs: number): (day: number) => boolean {
  const mayName = (field: readonly (number | string)[]) => {
    const hasWords = field.some((value) => typeof value === "string");
    return (value: number) => hasWords || field.includes(value);
  };
  const [inMonth, onDay, onWeekday] = [mayName(fields.month), mayName(fields.dayOfMonth), mayName(fields.dayOfWeek)];
  const words = [...fields.dayOfMonth, ...fields.dayOfWeek].some((value) => typeof value === "string");
  const matches = words ? momentMatcher(expression) : () => true;
  return (day) => {
    const date = new Date(day * DAY_MS + timeMs);
    return inMonth(date.getUTCMonth() + 1) && onDay(date.getUTCDate()) && onWeekday(date.getUTCDay()) && matches(date);
  };
}

/** A task that was never started answers questions; destroyed at once, it leaves nothing behind in the library. */
function momentMatcher(expression: string): (moment: Date) => boolean {
  const task = createTask(expression, () => {}, { timezone: "UTC" });
  void task.destroy();
  return (moment) => task.match(moment);
}
