// Calendar days in UTC. The emulator has day arithmetic of its own, so that a mistake in the product's shows.

const DAY_MS = 86_400_000;

/** First and last day, `YYYY-MM-DD`, both included. */
export type Window = { readonly start: string; readonly end: string };

export function dayOf(instant: Date): string {
  return instant.toISOString().slice(0, 10);
}

export function addDays(day: string, days: number): string {
  return dayOf(new Date(startMs(day) + days * DAY_MS));
}

/** Days since the day began: 0.5 at its noon, 1 and more once it is over, negative while it is still to come. */
export function ageDays(day: string, now: Date): number {
  return (now.getTime() - startMs(day)) / DAY_MS;
}

export function isWeekend(day: string): boolean {
  return [0, 6].includes(new Date(startMs(day)).getUTCDay());
}

export function daysOf({ start, end }: Window): string[] {
  const count = (startMs(end) - startMs(start)) / DAY_MS + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => addDays(start, i));
}

/** If one side is not asked for, the window has 30 days; without both it has the last 30 that are over. */
export function windowOf(start: string | undefined, end: string | undefined, now: Date): Window {
  const lastDay = end ?? addDays(dayOf(now), -1);
  return { start: start ?? addDays(lastDay, -29), end: lastDay };
}

/** Whether the text is a day that exists: not 2026-02-30. */
export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(startMs(text)) && addDays(text, 0) === text;
}

function startMs(day: string): number {
  return Date.parse(`${day}T00:00:00.000Z`);
}
