// Which periods can be shown. Pure.

import { type Day, dayCount, type Window } from "../usage/day.ts";

export const DAYS_DEFAULT = 30;
/** A leap year. More days than that can't be told apart in a chart. */
export const DAYS_MAX = 366;
/** No usage is older, and a database has no year 0. */
export const DAY_MIN: Day = "2000-01-01";

export type BrokenLimit = "ends after today" | "begins after its end" | "begins too early" | "has too many days";

/** The first rule that a period breaks. Who asked for it is told in the words of the place where it was asked for. */
export function brokenLimit({ start, end }: Window, today: Day): BrokenLimit | undefined {
  if (end > today) return "ends after today";
  if (start > end) return "begins after its end";
  if (start < DAY_MIN) return "begins too early";
  return dayCount({ start, end }) > DAYS_MAX ? "has too many days" : undefined;
}
