// When a cron expression is due in a time zone.

import { Cron } from "croner";

export type Schedule = { readonly schedule: string; readonly timezone: string };

const SECOND_MS = 1_000;

// Few schedules and zones are configured, and each is used every minute.
const crons = new Map<string, Cron>();

/**
 * A local time that the clock skips occurs at the first moment after the gap, and one that it shows twice occurs the first time. A schedule of
 * every hour follows what the clock shows. Over ten years and all zones croner 11.0.1 leaves out one case: in Greenland, where a gap
 * ends at midnight, the times from 23:00 on do not occur that night.
 */
function cronOf({ schedule, timezone }: Schedule): Cron {
  const key = `${timezone} ${schedule}`;
  const cron = crons.get(key) ?? new Cron(schedule, { timezone, domAndDow: true, paused: true });
  crons.set(key, cron);
  return cron;
}

/** The newest occurrence of the schedule at or before `at`; undefined if there was none. */
export function latestOccurrence(schedule: Schedule, at: Date): Date | undefined {
  return cronOf(schedule).previousRuns(1, new Date(floorToSecond(at) + SECOND_MS))[0];
}

/** The first occurrence of the schedule after `after`, not at it; undefined if there is none. */
export function nextOccurrence(schedule: Schedule, after: Date): Date | undefined {
  return nextOccurrences(schedule, after, 1)[0];
}

/** The first `count` occurrences of the schedule after `after`, fewer if there are no more. */
export function nextOccurrences(schedule: Schedule, after: Date, count: number): Date[] {
  return cronOf(schedule).nextRuns(count, new Date(floorToSecond(after)));
}

function floorToSecond(moment: Date): number {
  return Math.floor(moment.getTime() / SECOND_MS) * SECOND_MS;
}
