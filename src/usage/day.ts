// Calendar days in UTC, as text. Pure: text in, text out, so no time zone of the machine can shift a day.

import { utc } from "@date-fns/utc";
import { addDays as addDaysIn, differenceInCalendarDays, eachDayOfInterval, format, isValid, parseISO } from "date-fns";

/** A calendar day in UTC, `YYYY-MM-DD`. Days compare as text. */
export type Day = string;

/** First and last day, both included. */
export type Window = { readonly start: Day; readonly end: Day };

const IN_UTC = { in: utc };

export function dayOf(instant: Date): Day {
  return format(instant, "yyyy-MM-dd", IN_UTC);
}

/** The instant a day begins. */
export function startOfDay(day: Day): Date {
  return new Date(`${day}T00:00:00.000Z`);
}

export function addDays(day: Day, days: number): Day {
  return dayOf(addDaysIn(startOfDay(day), days, IN_UTC));
}

/** How many days the window has; 0 or less when it ends before it starts. */
export function dayCount({ start, end }: Window): number {
  return differenceInCalendarDays(startOfDay(end), startOfDay(start), IN_UTC) + 1;
}

export function daysOf({ start, end }: Window): Day[] {
  if (end < start) return [];
  return eachDayOfInterval({ start: startOfDay(start), end: startOfDay(end) }, IN_UTC).map(dayOf);
}

/** Whether the text is a day that exists: not 2026-02-30. */
export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && isValid(parseISO(text, IN_UTC));
}
