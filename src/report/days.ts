// Writes days for people. Days are UTC calendar days, and stay texts: no time zone can shift one. Pure.

import { addDays, type Day, dayCount, dayOf, startOfDay, type Window } from "../usage/day.ts";
import { counted } from "./figures.ts";
import { type Html, html } from "./html.ts";

const MONTH_DAY = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
const STRETCHES_MAX = 6;

/** "Nov 3", for an axis. */
export function dayLabel(day: Day): string {
  return MONTH_DAY.format(startOfDay(day));
}

/** "2026-11-20 02:15 UTC". */
export function instantText(instant: Date): string {
  return `${dayOf(instant)} ${instant.toISOString().slice(11, 16)} UTC`;
}

export function windowText({ start, end }: Window): string {
  return start === end ? start : `${start} to ${end}`;
}

/** The same where it must not break in the middle of a day. */
export function windowHtml({ start, end }: Window): Html {
  return start === end ? dayHtml(start) : html`${dayHtml(start)} to ${dayHtml(end)}`;
}

/** "2026-11-03 to 2026-11-05, 2026-11-09 and 3 more days". */
export function daysHtml(days: readonly Day[]): Html {
  const stretches = stretchesOf(days);
  const shown = stretches.slice(0, STRETCHES_MAX);
  const rest = stretches.slice(STRETCHES_MAX).reduce((sum, stretch) => sum + dayCount(stretch), 0);
  const text = shown.map((stretch, i) => html`${i > 0 ? ", " : ""}${windowHtml(stretch)}`);
  return html`${text}${rest > 0 ? ` and ${counted(rest, "more day")}` : ""}`;
}

function dayHtml(day: Day): Html {
  return html`<time>${day}</time>`;
}

/** Days that follow each other, as windows; ascending. */
function stretchesOf(days: readonly Day[]): Window[] {
  const stretches: Window[] = [];
  for (const day of [...new Set(days)].sort()) {
    const last = stretches.at(-1);
    if (last !== undefined && addDays(last.end, 1) === day) stretches[stretches.length - 1] = { ...last, end: day };
    else stretches.push({ start: day, end: day });
  }
  return stretches;
}
