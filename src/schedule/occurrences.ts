// When a job is due: the moments at which the clocks of its zone show the local times that its schedule names.

import { DAY_MS, type LocalClock, openLocalClock, SECOND_MS } from "./local-clock.ts";
import { type NamedTimes, parseTimes } from "./named-times.ts";

export type Schedule = { readonly schedule: string; readonly timezone: string };

/** A schedule that was read, for many questions. */
export type Timetable = { readonly times: NamedTimes; readonly clock: LocalClock };

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
  return { times: parseTimes(schedule), clock: openLocalClock(timezone) };
}

export function latestIn({ times, clock }: Timetable, at: Date): Date | undefined {
  const atMs = wholeSecond(at);
  if (times.everyHour) return dateOf(latestShown(times, clock, atMs));
  const localMs = times.lastUntil(furthestShown(clock, atMs));
  return dateOf(localMs === undefined ? undefined : momentOf(clock, localMs));
}

export function nextIn({ times, clock }: Timetable, after: Date): Date | undefined {
  const afterMs = wholeSecond(after);
  if (times.everyHour) return dateOf(nextShown(times, clock, afterMs));
  const localMs = times.firstFrom(furthestShown(clock, afterMs) + SECOND_MS);
  return dateOf(localMs === undefined ? undefined : momentOf(clock, localMs));
}

/** The latest local time that the clock has shown until then: when it was set back, one that it is going to show again. */
function furthestShown(clock: LocalClock, atMs: number): number {
  const shownMs = clock.shownAt(atMs);
  const setAtMs = clock.settings(atMs - DAY_MS, atMs).at(-1);
  return setAtMs === undefined ? shownMs : Math.max(shownMs, clock.shownAt(setAtMs - SECOND_MS));
}

/** The first moment at which the clock has come to a local time, or was set past it. */
function momentOf(clock: LocalClock, localMs: number): number {
  // No zone is a day away from UTC.
  for (let fromMs = localMs - DAY_MS; ; ) {
    const atMs = fromMs + localMs - clock.shownAt(fromMs);
    const [setAtMs] = clock.settings(fromMs, atMs);
    if (setAtMs === undefined) return Math.max(fromMs, atMs);
    fromMs = setAtMs;
  }
}

/** The last moment until `atMs` at which the clock shows a named time: sought from one setting of the clock back to the one before. */
function latestShown(times: NamedTimes, clock: LocalClock, atMs: number): number | undefined {
  for (let untilMs = atMs; ; ) {
    const shownMs = clock.shownAt(untilMs);
    const localMs = times.lastUntil(shownMs);
    if (localMs === undefined) return undefined;
    const foundMs = untilMs + localMs - shownMs;
    const setAtMs = clock.settings(foundMs, untilMs).at(-1);
    if (setAtMs === undefined) return foundMs;
    untilMs = setAtMs - SECOND_MS;
  }
}

function nextShown(times: NamedTimes, clock: LocalClock, afterMs: number): number | undefined {
  for (let fromMs = afterMs + SECOND_MS; ; ) {
    const shownMs = clock.shownAt(fromMs);
    const localMs = times.firstFrom(shownMs);
    if (localMs === undefined) return undefined;
    const foundMs = fromMs + localMs - shownMs;
    const [setAtMs] = clock.settings(fromMs, foundMs);
    if (setAtMs === undefined) return foundMs;
    fromMs = setAtMs;
  }
}

/** What is named is named to the second. */
function wholeSecond(moment: Date): number {
  return Math.floor(moment.getTime() / SECOND_MS) * SECOND_MS;
}

function dateOf(ms: number | undefined): Date | undefined {
  return ms === undefined ? undefined : new Date(ms);
}
