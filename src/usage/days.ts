// Calendar days in UTC, as text. Pure: text in, text out, so no time zone of the machine can shift a day.

import { addHours } from "date-fns/addHours";
import { millisecondsInDay, millisecondsInHour } from "date-fns/constants";
import { differenceInHours } from "date-fns/differenceInHours";
import { isValid } from "date-fns/isValid";

// The functions of date-fns that count days use the machine's time zone, those that count hours do not; a day in UTC has 24 hours. Each function
// is imported from its own module: the whole package loads every locale, which takes a second and 300 MB.

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

export function startOfDay(day: Day): Date {
  return new Date(`${day}T00:00:00.000Z`);
}

export function addDays(day: Day, days: number): Day {
  return dayOf(addHours(startOfDay(day), days * 24));
}

/** The last `count` complete days. */
export function lastDays(today: Day, count: number): Window {
  return { start: addDays(today, -count), end: addDays(today, -1) };
}

/** How many days the window has; 0 or less when it ends before it starts. */
export function dayCount({ start, end }: Window): number {
  return differenceInHours(startOfDay(end), startOfDay(start)) / 24 + 1;
}

export function daysOf(window: Window): Day[] {
  return Array.from({ length: Math.max(dayCount(window), 0) }, (_, index) => addDays(window.start, index));
}

/** False for a day that does not exist, such as 2026-02-30. */
export function isDay(text: string): boolean {
  const instant = startOfDay(text);
  return /^\d{4}-/.test(text) && isValid(instant) && dayOf(instant) === text;
}

/** The length of a period if none is chosen: whole weeks, so that earlier periods of the same length have as many days of each weekday. */
export const DAYS_DEFAULT = 28;
/** A leap year: a chart has no room for more days. */
export const DAYS_MAX = 366;
/** No usage is older. */
const DAY_MIN: Day = "2000-01-01";

/** A calendar month is compared with the month before. Other periods move back by whole weeks, so that weekdays match: 30 days move by 35. */
export function comparedPeriod(period: Window): Window {
  if (isCalendarMonth(period)) return monthBefore(period.start);
  const days = Math.ceil(dayCount(period) / 7) * 7;
  return { start: addDays(period.start, -days), end: addDays(period.end, -days) };
}

export function monthBefore(firstDay: Day): Window {
  const end = addDays(firstDay, -1);
  return { start: `${end.slice(0, 8)}01`, end };
}

function isCalendarMonth({ start, end }: Window): boolean {
  return start.endsWith("-01") && end.slice(0, 7) === start.slice(0, 7) && addDays(end, 1).endsWith("-01");
}

/** The parameter (`from` or `to`) and the rule that it breaks; undefined if both are right. `newestIs` explains `newest` to the user. */
export function periodError(
  { start, end }: Window,
  newest: Day,
  { daysMax = DAYS_MAX, newestIs = "which is today in UTC" } = {},
): string | undefined {
  if (end > newest) return `to: expected ${newest} or before, ${newestIs}; got ${end}`;
  if (start > end) return `from: expected ${end} or before, which is the last day; got ${start}`;
  if (start < DAY_MIN) return `from: expected ${DAY_MIN} or after; got ${start}`;
  if (dayCount({ start, end }) <= daysMax) return undefined;
  return `from: expected ${addDays(end, 1 - daysMax)} or after, as there are at most ${daysMax} days; got ${start}`;
}
