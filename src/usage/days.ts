// Calendar days in UTC, as text. Pure: text in, text out, so no time zone of the machine can shift a day.

// A day in UTC always has 24 hours. Functions of date-fns that count hours know no time zone; those that count days use the machine's.
// Each is imported from its own module: importing the whole package loads every locale, which takes a second and 300 MB.
import { addHours } from "date-fns/addHours";
import { millisecondsInDay, millisecondsInHour } from "date-fns/constants";
import { differenceInHours } from "date-fns/differenceInHours";
import { isValid } from "date-fns/isValid";

export const HOUR_MS = millisecondsInHour;
export const DAY_MS = millisecondsInDay;
export const DAY_SECONDS = DAY_MS / 1000;

/** A calendar day in UTC, `YYYY-MM-DD`. Sorted as text, days are in order of time. */
export type Day = string;

/** First and last day, both included. */
export type Window = { readonly start: Day; readonly end: Day };

export function dayOf(instant: Date): Day {
  return instant.toISOString().slice(0, "YYYY-MM-DD".length);
}

/** The instant at which a day begins. */
export function startOfDay(day: Day): Date {
  return new Date(`${day}T00:00:00.000Z`);
}

export function addDays(day: Day, days: number): Day {
  return dayOf(addHours(startOfDay(day), days * 24));
}

/** How many days the window has; 0 or less when it ends before it starts. */
export function dayCount({ start, end }: Window): number {
  return differenceInHours(startOfDay(end), startOfDay(start)) / 24 + 1;
}

export function daysOf(window: Window): Day[] {
  return Array.from({ length: Math.max(dayCount(window), 0) }, (_, index) => addDays(window.start, index));
}

/** The same number of days, right before the window. */
export function windowBefore(window: Window): Window {
  return { start: addDays(window.start, -dayCount(window)), end: addDays(window.start, -1) };
}

/**
 * As many days, from the day of the month before with the same number, or from its last day if it has none. A whole calendar month gives the
 * whole month before, and the first days of a month give the same days of the month before, which ends earlier if it is shorter.
 */
export function monthBefore(window: Window): Window {
  const start = inMonthBefore(window.start);
  if (isCalendarMonth(window)) return { start, end: addDays(window.start, -1) };
  const isMonthSoFar = window.start.endsWith("-01") && window.end.slice(0, 7) === window.start.slice(0, 7);
  return { start, end: isMonthSoFar ? inMonthBefore(window.end) : addDays(start, dayCount(window) - 1) };
}

/** Of 31 March it is the last day of February. */
function inMonthBefore(day: Day): Day {
  const lastDay = addDays(`${day.slice(0, 7)}-01`, -1);
  const sameNumber = `${lastDay.slice(0, 7)}${day.slice(7)}`;
  return sameNumber < lastDay ? sameNumber : lastDay;
}

function isCalendarMonth({ start, end }: Window): boolean {
  return start.endsWith("-01") && end.slice(0, 7) === start.slice(0, 7) && addDays(end, 1).endsWith("-01");
}

/** What a period is compared with: as many days right before it, but a whole calendar month with the calendar month before. */
export function periodBefore(window: Window): Window {
  return isCalendarMonth(window) ? monthBefore(window) : windowBefore(window);
}

/** Whether the text is a day that exists: not 2026-02-30. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const instant = startOfDay(text);
  return isValid(instant) && dayOf(instant) === text;
}
