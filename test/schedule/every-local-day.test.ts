// Only in CI: over ten years and in every time zone there is, a job runs once for each local day that its schedule names. The expected
// days and local times are computed here, from Intl.DateTimeFormat, without any code of the schedule.

import { expect, test } from "vitest";
import { latestOccurrence, nextOccurrence, type Schedule } from "../../src/schedule/cron.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A day as the number of days since 1970-01-01. */
const FIRST_DAY = Date.UTC(2020, 0, 1) / DAY_MS;
const LAST_DAY = Date.UTC(2029, 11, 31) / DAY_MS;
const everyDay = Array.from({ length: LAST_DAY - FIRST_DAY + 1 }, (_, i) => FIRST_DAY + i);
const mondayToFriday = everyDay.filter((day) => new Date(day * DAY_MS).getUTCDay() % 6 !== 0);

/** The local clock of a zone. */
type LocalClock = {
  /** The same for clocks that show the same over all years. */
  readonly signature: string;
  readonly shownAt: (atMs: number) => number;
  /** How far the clock is ahead of UTC; undefined if it is set on the day before or the day after `atMs`. */
  readonly steadyAt: (atMs: number) => number | undefined;
};

const all = [...new Set([...Intl.supportedValuesOf("timeZone"), "UTC"])].map((name) => ({
  name,
  clock: openClock(name),
}));
/** Of the zones with the same clock one. */
const zones = [...new Map(all.map((zone) => [zone.clock.signature, zone])).values()];

test("the runtime knows more than 400 time zones, with more than 50 different clocks", () => {
  expect(all.length).toBeGreaterThan(400);
  expect(zones.length).toBeGreaterThan(50);
});

test.runIf(process.env.CI !== undefined).each([
  ["0 0 * * *", 0, everyDay],
  ["30 0 * * *", 0.5, everyDay],
  ["15 2 * * *", 2.25, everyDay],
  ["59 23 * * *", 23 + 59 / 60, everyDay],
  ["30 2 * * 1-5", 2.5, mondayToFriday],
])("%s occurs once for each local day that it names, in every zone", (schedule, hours, days) => {
  const timeMs = Math.round(hours * HOUR_MS);
  const faults = zones.flatMap(({ name, clock }) =>
    faultsOf({ schedule, timezone: name }, clock, timeMs, days)
      .slice(0, 2)
      .map((fault) => `${name}: ${fault}`),
  );
  expect(faults).toEqual([]);
});

function faultsOf(schedule: Schedule, clock: LocalClock, timeMs: number, days: readonly number[]): string[] {
  const faults: string[] = [];
  let at = nextOccurrence(schedule, new Date((FIRST_DAY - 3) * DAY_MS));
  while (at && (dayFor(at, clock, timeMs) ?? FIRST_DAY) < FIRST_DAY) at = nextOccurrence(schedule, at);
  for (const day of days) {
    if (!at) return [...faults, `nothing for ${shown(day)}`];
    if (dayFor(at, clock, timeMs) !== day) faults.push(`${at.toISOString()} is not for ${shown(day)}`);
    const next = nextOccurrence(schedule, at);
    const isSetSoon = clock.steadyAt(at.getTime()) === undefined;
    for (const asked of isSetSoon ? momentsBetween(at, next) : [lastBefore(next, at)]) {
      const before = latestOccurrence(schedule, asked);
      const after = isSetSoon ? nextOccurrence(schedule, asked) : next;
      if (before?.getTime() === at.getTime() && after?.getTime() === next?.getTime()) continue;
      faults.push(`${asked.toISOString()} is between ${before?.toISOString()} and ${after?.toISOString()}`);
    }
    at = next;
  }
  if (at && (dayFor(at, clock, timeMs) ?? LAST_DAY) <= LAST_DAY) faults.push(`${at.toISOString()} is one too many`);
  return faults;
}

function lastBefore(next: Date | undefined, at: Date): Date {
  return new Date((next ?? at).getTime() - 1);
}

/** Moments from `at` until just before `next`. Some of them are in an hour that the clock shows twice, or after the end of a gap. */
function momentsBetween(at: Date, next: Date | undefined): Date[] {
  const halfHours = [0, 1, 2, 3, 4, 5, 6].map((halves) => new Date(at.getTime() + (halves * HOUR_MS) / 2));
  return [...halfHours, lastBefore(next, at)];
}

/**
 * The local day that the occurrence at `at` is for: the day on which the clock then shows the named time, for the first time; or the
 * day whose named time is in the gap that ends at `at`. Undefined if there is no such day.
 */
function dayFor(at: Date, clock: LocalClock, timeMs: number): number | undefined {
  const atMs = at.getTime();
  const steadyMs = clock.steadyAt(atMs);
  const localMs = steadyMs === undefined ? clock.shownAt(atMs) : atMs + steadyMs;
  const day = (localMs - timeMs) / DAY_MS;
  if (Number.isInteger(day)) {
    // Clocks are set back by half an hour, an hour, or two.
    const isFirst =
      steadyMs !== undefined || ![0.5, 1, 2].some((hours) => clock.shownAt(atMs - hours * HOUR_MS) === localMs);
    return isFirst ? day : undefined;
  }
  const skipped = Math.floor(day);
  return clock.shownAt(atMs - 1_000) < skipped * DAY_MS + timeMs ? skipped : undefined;
}

function openClock(timeZone: string): LocalClock {
  const format = new Intl.DateTimeFormat("en-GB", { timeZone, dateStyle: "short", timeStyle: "medium" });
  const shownAt = (atMs: number) => {
    const text = format.format(atMs); // 29/03/2026, 02:15:00
    return Date.parse(`${text.slice(6, 10)}-${text.slice(3, 5)}-${text.slice(0, 2)}T${text.slice(12)}Z`);
  };
  const firstMs = (FIRST_DAY - 5) * DAY_MS;
  const midnights = Array.from({ length: everyDay.length + 10 }, (_, i) => firstMs + i * DAY_MS);
  const aheadMs = midnights.map((atMs) => shownAt(atMs) - atMs);
  const changes = aheadMs.flatMap((ahead, i) => (ahead === aheadMs[i + 1] ? [] : [midnights[i] ?? 0]));
  const hours = changes.flatMap((atMs) => Array.from({ length: 24 }, (_, hour) => shownAt(atMs + hour * HOUR_MS)));
  return {
    signature: [...aheadMs, ...hours].join(),
    shownAt,
    steadyAt(atMs) {
      const i = Math.floor((atMs - firstMs) / DAY_MS);
      const ahead = aheadMs[i];
      return ahead === aheadMs[i - 1] && ahead === aheadMs[i + 1] && ahead === aheadMs[i + 2] ? ahead : undefined;
    },
  };
}

function shown(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
