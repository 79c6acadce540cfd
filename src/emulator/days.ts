// Calendar days in UTC. The emulator has its own day arithmetic, so that tests find a mistake in the program's.

const DAY_MS = 86_400_000;

/** The first and the last day, `YYYY-MM-DD`. */
export type DayRange = { readonly start: string; readonly end: string };

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

export function daysOf({ start, end }: DayRange): string[] {
  const count = (startMs(end) - startMs(start)) / DAY_MS + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => addDays(start, i));
}

/** Without an end the range ends yesterday. Without a start it has 30 days. */
export function rangeOf(start: string | undefined, end: string | undefined, now: Date): DayRange {
  const lastDay = end ?? addDays(dayOf(now), -1);
  return { start: start ?? addDays(lastDay, -29), end: lastDay };
}

/** False for a day that does not exist, such as 2026-02-30. */
export function isDay(text: string): boolean {
  return /^\d{4}-/.test(text) && !Number.isNaN(startMs(text)) && addDays(text, 0) === text;
}

function startMs(day: string): number {
  return Date.parse(`${day}T00:00:00.000Z`);
}
