// Calendar days in UTC, as text. Pure: text in, text out, so no time zone of the machine can shift a day.

// Each function is imported from its own module: importing the whole package loads every locale, which takes a second and 300 MB.
import { UTCDate } from "@date-fns/utc/date";
import { addDays as addDaysTo } from "date-fns/addDays";
import { differenceInCalendarDays } from "date-fns/differenceInCalendarDays";
import { eachDayOfInterval } from "date-fns/eachDayOfInterval";
import { isValid } from "date-fns/isValid";

export const HOUR_MS = 60 * 60 * 1000;
export const DAY_MS = 24 * HOUR_MS;
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
  return new UTCDate(`${day}T00:00:00.000Z`);
}

export function addDays(day: Day, days: number): Day {
  return dayOf(addDaysTo(startOfDay(day), days));
}

/** How many days the window has; 0 or less when it ends before it starts. */
export function dayCount({ start, end }: Window): number {
  return differenceInCalendarDays(startOfDay(end), startOfDay(start)) + 1;
}

export function daysOf({ start, end }: Window): Day[] {
  if (end < start) return [];
  return eachDayOfInterval({ start: startOfDay(start), end: startOfDay(end) }).map(dayOf);
}

/** Whether the text is a day that exists: not 2026-02-30. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const instant = startOfDay(text);
  return isValid(instant) && dayOf(instant) === text;
}
