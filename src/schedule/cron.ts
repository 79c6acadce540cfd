// When a cron expression is due in a time zone: the moments at which the local clock shows the times that it names.

import { createTask, type ParsedFields, parse } from "node-cron";
import { DAY_MS } from "../usage/days.ts";

export type Schedule = { readonly schedule: string; readonly timezone: string };

type Timetable = { readonly times: CronTimes; readonly clock: LocalClock };

const SECOND_MS = 1_000;

/**
 * The newest occurrence of the schedule at or before `at`; undefined if there was none in 40 years.
 *
 * Each named local time occurs once, at the first moment at which the clock shows it. When the clock is set forward, all times it
 * skips occur together at the first moment after the gap; this includes a whole day that a zone left out. When the clock is set
 * back, a time that it shows twice occurs only the first time.
 *
 * A schedule that names every hour of the day means an interval and not a time of the day, so it follows what the clock shows: in
 * an hour that is shown twice it occurs twice, and skipped times do not occur.
 */
export function latestOccurrence(schedule: Schedule, at: Date): Date | undefined {
  const { times, clock } = timetableOf(schedule);
  const atMs = floorToSecond(at);
  if (times.everyHour) return dateOf(latestByLocalTime(times, clock, atMs));
  const localMs = times.lastUntil(latestLocalMs(clock, atMs));
  return dateOf(localMs === undefined ? undefined : firstMomentAt(clock, localMs));
}

/** The first occurrence of the schedule after `after`, not at it; undefined if there is none in 40 years. */
export function nextOccurrence(schedule: Schedule, after: Date): Date | undefined {
  const { times, clock } = timetableOf(schedule);
  const afterMs = floorToSecond(after);
  if (times.everyHour) return dateOf(nextByLocalTime(times, clock, afterMs));
  const localMs = times.firstFrom(latestLocalMs(clock, afterMs) + SECOND_MS);
  return dateOf(localMs === undefined ? undefined : firstMomentAt(clock, localMs));
}

/** The first `count` occurrences of the schedule after `after`, fewer if there are no more. */
export function nextOccurrences(schedule: Schedule, after: Date, count: number): Date[] {
  const occurrences: Date[] = [];
  for (let from = after; occurrences.length < count; ) {
    const next = nextOccurrence(schedule, from);
    if (next === undefined) break;
    occurrences.push(next);
    from = next;
  }
  return occurrences;
}

// Few schedules and zones are configured, and each is used every minute.
const timesOf = memoized(parseCron);
const clockOf = memoized(openLocalClock);

function timetableOf({ schedule, timezone }: Schedule): Timetable {
  return { times: timesOf(schedule), clock: clockOf(timezone) };
}

function memoized<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}

/** The latest local time that the clock has shown so far. After it was set back, this is a time that it will show again. */
function latestLocalMs(clock: LocalClock, atMs: number): number {
  const shownMs = clock.localMsAt(atMs);
  const changedAtMs = clock.changes(atMs - DAY_MS, atMs).at(-1);
  return changedAtMs === undefined ? shownMs : Math.max(shownMs, clock.localMsAt(changedAtMs - SECOND_MS));
}

/** The first moment at which the clock shows a local time, or has been set past it. */
function firstMomentAt(clock: LocalClock, localMs: number): number {
  // Every zone is less than a day away from UTC.
  for (let fromMs = localMs - DAY_MS; ; ) {
    const atMs = fromMs + localMs - clock.localMsAt(fromMs);
    const [changedAtMs] = clock.changes(fromMs, atMs);
    if (changedAtMs === undefined) return Math.max(fromMs, atMs);
    fromMs = changedAtMs;
  }
}

/** The last moment until `atMs` at which the clock shows a named time. Searches backwards from one clock change to the one before. */
function latestByLocalTime(times: CronTimes, clock: LocalClock, atMs: number): number | undefined {
  for (let untilMs = atMs; ; ) {
    const shownMs = clock.localMsAt(untilMs);
    const localMs = times.lastUntil(shownMs);
    if (localMs === undefined) return undefined;
    const foundMs = untilMs + localMs - shownMs;
    const changedAtMs = clock.changes(foundMs, untilMs).at(-1);
    if (changedAtMs === undefined) return foundMs;
    untilMs = changedAtMs - SECOND_MS;
  }
}

function nextByLocalTime(times: CronTimes, clock: LocalClock, afterMs: number): number | undefined {
  for (let fromMs = afterMs + SECOND_MS; ; ) {
    const shownMs = clock.localMsAt(fromMs);
    const localMs = times.firstFrom(shownMs);
    if (localMs === undefined) return undefined;
    const foundMs = fromMs + localMs - shownMs;
    const [changedAtMs] = clock.changes(fromMs, foundMs);
    if (changedAtMs === undefined) return foundMs;
    fromMs = changedAtMs;
  }
}

/** Cron expressions name times to the second. */
function floorToSecond(moment: Date): number {
  return Math.floor(moment.getTime() / SECOND_MS) * SECOND_MS;
}

function dateOf(ms: number | undefined): Date | undefined {
  return ms === undefined ? undefined : new Date(ms);
}

// The local times that a cron expression names. A local time is a number here: the milliseconds at which a clock in UTC shows the
// same, so time zones play no part.

type CronTimes = {
  readonly everyHour: boolean;
  /** The first named time at or after a local time; undefined if there is none in 40 years. */
  readonly firstFrom: (localMs: number) => number | undefined;
  /** The last named time at or before a local time; undefined if there was none in 40 years. */
  readonly lastUntil: (localMs: number) => number | undefined;
};

/** The rarest day that can be named, a 29 February on a given weekday, comes at least every 40 years, even across 2100. */
const SEARCH_DAYS_MAX = 40 * 365.25;

export function parseCron(expression: string): CronTimes {
  const fields = parse(expression);
  const times = timesOfDay(fields);
  const isNamed = dayMatcher(expression, fields, times[0] ?? 0);

  function search(localMs: number, step: 1 | -1, timeOn: (dayMs: number) => number | undefined): number | undefined {
    const today = Math.floor(localMs / DAY_MS);
    for (let i = 0; i <= SEARCH_DAYS_MAX; i++) {
      const day = today + i * step;
      const timeMs = isNamed(day) ? timeOn(day * DAY_MS) : undefined;
      if (timeMs !== undefined) return day * DAY_MS + timeMs;
    }
    return undefined;
  }

  return {
    everyHour: new Set(fields.hour).size === 24,
    firstFrom: (localMs) => search(localMs, 1, (dayMs) => times.find((timeMs) => dayMs + timeMs >= localMs)),
    lastUntil: (localMs) => search(localMs, -1, (dayMs) => times.findLast((timeMs) => dayMs + timeMs <= localMs)),
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
 * Returns a test whether the expression names a day, which is given as the number of days since 1970-01-01. Its month, day of the month
 * and weekday must all match. Numeric fields are compared here; words such as "L", "15W" or "1#2" are left to the library.
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

/** Uses a task that is never started. It is destroyed at once, because the library keeps a list of its tasks. */
function momentMatcher(expression: string): (moment: Date) => boolean {
  const task = createTask(expression, () => {}, { timezone: "UTC" });
  void task.destroy();
  return (moment) => task.match(moment);
}

// What the clocks of a time zone show, and when they are changed.

type LocalClock = {
  readonly localMsAt: (atMs: number) => number;
  /** The moments after `afterMs` and up to `untilMs` at which the clock is set forward or back; the earliest first. */
  readonly changes: (afterMs: number, untilMs: number) => readonly number[];
};

/** The clock's offset from UTC over a span of days, in which it changes at most once, at the latest at the end of the span. */
type OffsetSpan = { readonly offsetMs: number; readonly changedAtMs: number | undefined; readonly endOffsetMs: number };

/** Since 1970, two clock changes of a zone have always been at least a week apart. */
const SPAN_MS = 4 * DAY_MS;

/**
 * The runtime says what a clock shows, but not when it is changed. A change is searched for in a span of days whose offset at the end
 * differs from the one at its start.
 */
export function openLocalClock(timezone: string): LocalClock {
  // The first format of Intl takes 10 ms of CPU time, a tenth of what a command takes to start.
  if (timezone === "UTC") return { localMsAt: (atMs) => atMs, changes: () => [] };
  // The Swedish format is that of ISO 8601.
  const format = new Intl.DateTimeFormat("sv", { timeZone: timezone, dateStyle: "short", timeStyle: "medium" });
  const spans = new Map<number, OffsetSpan>();

  function offsetMsAt(atMs: number): number {
    return Date.parse(`${format.format(atMs).replace(" ", "T")}Z`) - atMs;
  }

  function spanOf(number: number): OffsetSpan {
    const known = spans.get(number);
    if (known) return known;
    const startMs = number * SPAN_MS;
    const endMs = startMs + SPAN_MS;
    const offsetMs = spans.get(number - 1)?.endOffsetMs ?? offsetMsAt(startMs);
    const endOffsetMs = offsetMsAt(endMs);
    const changedAtMs = offsetMs === endOffsetMs ? undefined : changeBetween(startMs, endMs);
    const span = { offsetMs, changedAtMs, endOffsetMs };
    spans.set(number, span);
    return span;
  }

  /** Finds the change to the second: Liberia set its clocks forward by 44 minutes and 30 seconds in 1972. */
  function changeBetween(startMs: number, endMs: number): number {
    const offsetMs = offsetMsAt(startMs);
    let beforeMs = startMs;
    let afterMs = endMs;
    while (afterMs - beforeMs > SECOND_MS) {
      const middleMs = beforeMs + Math.floor((afterMs - beforeMs) / 2 / SECOND_MS) * SECOND_MS;
      if (offsetMsAt(middleMs) === offsetMs) beforeMs = middleMs;
      else afterMs = middleMs;
    }
    return afterMs;
  }

  return {
    localMsAt(atMs) {
      const { offsetMs, changedAtMs, endOffsetMs } = spanOf(Math.floor(atMs / SPAN_MS));
      return atMs + (changedAtMs === undefined || atMs < changedAtMs ? offsetMs : endOffsetMs);
    },
    changes(afterMs, untilMs) {
      const found: number[] = [];
      for (let number = Math.floor(afterMs / SPAN_MS); number <= Math.floor(untilMs / SPAN_MS); number++) {
        const { changedAtMs } = spanOf(number);
        if (changedAtMs !== undefined && changedAtMs > afterMs && changedAtMs <= untilMs) found.push(changedAtMs);
      }
      return found;
    },
  };
}
