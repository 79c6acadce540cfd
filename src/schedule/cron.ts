// When a cron expression is due in a time zone: the moments at which local clocks show the times that it names.

import { createTask, type ParsedFields, parse } from "node-cron";
import { DAY_MS } from "../usage/days.ts";

export type Schedule = { readonly schedule: string; readonly timezone: string };

/** A schedule that was read, for many questions. */
export type Timetable = { readonly times: CronTimes; readonly clock: LocalClock };

/**
 * The newest moment of the schedule at or before `at`; undefined where there was none in 40 years.
 *
 * Each local time that is named comes once, when the clock gets to it. One that the clock skips, as it is set forward,
 * comes with the first moment after the gap, together with others of the gap; this holds for a whole day that a zone left
 * out, too. Of one that the clock shows twice, as it is set back, the first counts.
 *
 * A schedule that names every hour of the day means the time between two runs, and not a time of the day: it goes by what
 * the clock shows. In an hour that comes twice it runs twice, and a time in a gap does not come.
 */
export function latestOccurrence(schedule: Schedule, at: Date): Date | undefined {
  return latestIn(openTimetable(schedule), at);
}

/** The first moment of the schedule after `after`, not at it; undefined where there is none in 40 years. */
export function nextOccurrence(schedule: Schedule, after: Date): Date | undefined {
  return nextIn(openTimetable(schedule), after);
}

/** The first `count` moments of the schedule after `after`, fewer where there are no more. */
export function nextOccurrences(schedule: Schedule, after: Date, count: number): Date[] {
  const timetable = openTimetable(schedule);
  const moments: Date[] = [];
  for (let from = after; moments.length < count; ) {
    const next = nextIn(timetable, from);
    if (next === undefined) break;
    moments.push(next);
    from = next;
  }
  return moments;
}

function openTimetable({ schedule, timezone }: Schedule): Timetable {
  return { times: parseCron(schedule), clock: openLocalClock(timezone) };
}

export function latestIn({ times, clock }: Timetable, at: Date): Date | undefined {
  const atMs = floorToSecond(at);
  if (times.everyHour) return dateOf(latestByLocalTime(times, clock, atMs));
  const localMs = times.lastUntil(latestLocalMs(clock, atMs));
  return dateOf(localMs === undefined ? undefined : momentOf(clock, localMs));
}

export function nextIn({ times, clock }: Timetable, after: Date): Date | undefined {
  const afterMs = floorToSecond(after);
  if (times.everyHour) return dateOf(nextByLocalTime(times, clock, afterMs));
  const localMs = times.firstFrom(latestLocalMs(clock, afterMs) + SECOND_MS);
  return dateOf(localMs === undefined ? undefined : momentOf(clock, localMs));
}

/** The latest local time that the clock has shown until then: when it was set back, one that it is going to show again. */
function latestLocalMs(clock: LocalClock, atMs: number): number {
  const shownMs = clock.localMsAt(atMs);
  const setAtMs = clock.changes(atMs - DAY_MS, atMs).at(-1);
  return setAtMs === undefined ? shownMs : Math.max(shownMs, clock.localMsAt(setAtMs - SECOND_MS));
}

/** The first moment at which the clock has come to a local time, or was set past it. */
function momentOf(clock: LocalClock, localMs: number): number {
  // No zone is a day away from UTC.
  for (let fromMs = localMs - DAY_MS; ; ) {
    const atMs = fromMs + localMs - clock.localMsAt(fromMs);
    const [setAtMs] = clock.changes(fromMs, atMs);
    if (setAtMs === undefined) return Math.max(fromMs, atMs);
    fromMs = setAtMs;
  }
}

/** The last moment until `atMs` at which the clock shows a named time: sought from one setting of the clock back to the one before. */
function latestByLocalTime(times: CronTimes, clock: LocalClock, atMs: number): number | undefined {
  for (let untilMs = atMs; ; ) {
    const shownMs = clock.localMsAt(untilMs);
    const localMs = times.lastUntil(shownMs);
    if (localMs === undefined) return undefined;
    const foundMs = untilMs + localMs - shownMs;
    const setAtMs = clock.changes(foundMs, untilMs).at(-1);
    if (setAtMs === undefined) return foundMs;
    untilMs = setAtMs - SECOND_MS;
  }
}

function nextByLocalTime(times: CronTimes, clock: LocalClock, afterMs: number): number | undefined {
  for (let fromMs = afterMs + SECOND_MS; ; ) {
    const shownMs = clock.localMsAt(fromMs);
    const localMs = times.firstFrom(shownMs);
    if (localMs === undefined) return undefined;
    const foundMs = fromMs + localMs - shownMs;
    const [setAtMs] = clock.changes(fromMs, foundMs);
    if (setAtMs === undefined) return foundMs;
    fromMs = setAtMs;
  }
}

/** What is named is named to the second. */
function floorToSecond(moment: Date): number {
  return Math.floor(moment.getTime() / SECOND_MS) * SECOND_MS;
}

function dateOf(ms: number | undefined): Date | undefined {
  return ms === undefined ? undefined : new Date(ms);
}

// The local times that a cron expression names. A local time is a number here: the milliseconds at which a clock in UTC
// shows the same, so time zones have no part in it.

export type CronTimes = {
  readonly everyHour: boolean;
  /** The first at or after a local time; undefined where none comes in 40 years. */
  readonly firstFrom: (localMs: number) => number | undefined;
  /** The last at or before a local time; undefined where none was in 40 years. */
  readonly lastUntil: (localMs: number) => number | undefined;
};

/** What comes at all comes again after 40 years at the latest: a 29 February on a given weekday, where 2100 lies between. */
const SEARCH_DAYS_MAX = 40 * 365.25;

export function parseCron(expression: string): CronTimes {
  const fields = parse(expression);
  const times = timesOfDay(fields);
  const isNamed = dayMatcher(expression, fields, times[0] ?? 0);
  return {
    everyHour: new Set(fields.hour).size === 24,
    firstFrom(localMs) {
      const today = Math.floor(localMs / DAY_MS);
      for (let day = today; day <= today + SEARCH_DAYS_MAX; day++) {
        if (!isNamed(day)) continue;
        const timeMs = times.find((timeMs) => day * DAY_MS + timeMs >= localMs);
        if (timeMs !== undefined) return day * DAY_MS + timeMs;
      }
      return undefined;
    },
    lastUntil(localMs) {
      const today = Math.floor(localMs / DAY_MS);
      for (let day = today; day >= today - SEARCH_DAYS_MAX; day--) {
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

// What the clocks of a time zone show, and when they are set. A local time is a number here: the milliseconds at which a
// clock in UTC shows the same.

export type LocalClock = {
  readonly localMsAt: (atMs: number) => number;
  /** The moments after one, and not after another, at which the clock is set forward or back; the earliest first. */
  readonly changes: (afterMs: number, untilMs: number) => readonly number[];
};

/** How far the clock is ahead of UTC from one moment until another. It may be set as late as the moment at which the stretch ends. */
type OffsetSpan = { readonly aheadMs: number; readonly setAtMs: number | undefined; readonly aheadMsAtEnd: number };

const SECOND_MS = 1_000;

/** Since 1970 every zone has left its clocks alone for a week at least before it set them again. */
const OFFSET_SPAN_MS = 4 * DAY_MS;

/**
 * The runtime tells what a clock shows, and not when it is set: that is looked for where the clock is not as far ahead of
 * UTC at the end of a stretch of days as at its start.
 */
export function openLocalClock(timezone: string): LocalClock {
  // Sweden writes a time as ISO 8601 does.
  const format = new Intl.DateTimeFormat("sv", { timeZone: timezone, dateStyle: "short", timeStyle: "medium" });
  const stretches = new Map<number, OffsetSpan>();

  function aheadMsAt(atMs: number): number {
    return Date.parse(`${format.format(atMs).replace(" ", "T")}Z`) - atMs;
  }

  function stretchOf(number: number): OffsetSpan {
    const known = stretches.get(number);
    if (known) return known;
    const startMs = number * OFFSET_SPAN_MS;
    const endMs = startMs + OFFSET_SPAN_MS;
    const aheadMs = stretches.get(number - 1)?.aheadMsAtEnd ?? aheadMsAt(startMs);
    const aheadMsAtEnd = aheadMsAt(endMs);
    const setAtMs = aheadMs === aheadMsAtEnd ? undefined : settingBetween(startMs, endMs);
    const read = { aheadMs, setAtMs, aheadMsAtEnd };
    stretches.set(number, read);
    return read;
  }

  /** To the second: Liberia set its clocks by 44 minutes and 30 seconds in 1972. */
  function settingBetween(startMs: number, endMs: number): number {
    const aheadMs = aheadMsAt(startMs);
    let beforeMs = startMs;
    let afterMs = endMs;
    while (afterMs - beforeMs > SECOND_MS) {
      const middleMs = beforeMs + Math.floor((afterMs - beforeMs) / 2 / SECOND_MS) * SECOND_MS;
      if (aheadMsAt(middleMs) === aheadMs) beforeMs = middleMs;
      else afterMs = middleMs;
    }
    return afterMs;
  }

  return {
    localMsAt(atMs) {
      const { aheadMs, setAtMs, aheadMsAtEnd } = stretchOf(offsetSpanAt(atMs));
      return atMs + (setAtMs === undefined || atMs < setAtMs ? aheadMs : aheadMsAtEnd);
    },
    changes(afterMs, untilMs) {
      const found: number[] = [];
      for (let number = offsetSpanAt(afterMs); number <= offsetSpanAt(untilMs); number++) {
        const { setAtMs } = stretchOf(number);
        if (setAtMs !== undefined && setAtMs > afterMs && setAtMs <= untilMs) found.push(setAtMs);
      }
      return found;
    },
  };
}

function offsetSpanAt(ms: number): number {
  return Math.floor(ms / OFFSET_SPAN_MS);
}
