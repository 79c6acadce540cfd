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

/** Whether the text is a day that exists: not 2026-02-30. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const instant = startOfDay(text);
  return isValid(instant) && dayOf(instant) === text;
}
