// Over ten years and in every time zone there is, a job runs once for each local day that its schedule names.

import { expect, test } from "vitest";
import { type LocalClock, openLocalClock } from "../../src/schedule/local-clock.ts";
import { parseTimes } from "../../src/schedule/named-times.ts";
import { latestIn, nextIn, type Timetable } from "../../src/schedule/occurrences.ts";
import { addDays, type Day, daysOf, startOfDay } from "../../src/usage/day.ts";

const FIRST_DAY = "2020-01-01";
const LAST_DAY = "2029-12-31";
const SECOND_MS = 1_000;
const DAY_MS = 24 * 60 * 60 * SECOND_MS;

type Zone = {
  readonly name: string;
  readonly clock: LocalClock;
  /** What the runtime says that the clock shows: "2026-03-29 02:15:00". */
  readonly read: (atMs: number) => string;
};

// Opened once for all schedules: what a clock shows has nothing to do with a schedule.
const zones = [...new Set([...Intl.supportedValuesOf("timeZone"), "UTC"])].map((name): Zone => {
  const format = new Intl.DateTimeFormat("sv", { timeZone: name, dateStyle: "short", timeStyle: "medium" });
  return { name, clock: openLocalClock(name), read: (atMs) => format.format(atMs) };
});
const everyDay = daysOf({ start: FIRST_DAY, end: LAST_DAY });
const mondayToFriday = everyDay.filter((day) => ![0, 6].includes(startOfDay(day).getUTCDay()));

test("the runtime knows the zones of the world", () => {
  expect(zones.length).toBeGreaterThan(400);
});

test.each([
  ["0 0 * * *", "00:00:00", everyDay],
  ["30 0 * * *", "00:30:00", everyDay],
  ["15 2 * * *", "02:15:00", everyDay],
  ["59 23 * * *", "23:59:00", everyDay],
  ["30 2 * * 1-5", "02:30:00", mondayToFriday],
])("%s comes once for each day that it names, in every zone, at the first moment it can", (schedule, time, days) => {
  const times = parseTimes(schedule);
  const faults = zones.flatMap((zone) => faultsOf({ times, clock: zone.clock }, zone, time, days).slice(0, 3));
  expect(faults).toEqual([]);
});

function faultsOf(timetable: Timetable, zone: Zone, time: string, days: readonly Day[]): string[] {
  const faults: string[] = [];
  const fault = (at: Date, what: string) => faults.push(`${zone.name} ${at.toISOString()}: ${what}`);
  // The day before the first one is named or not: what is asked for begins after its time.
  let at = nextIn(timetable, new Date(startOfDay(FIRST_DAY).getTime() - 3 * DAY_MS));
  while (at && dayOf(at, zone, time) < FIRST_DAY) at = nextIn(timetable, at);
  for (const day of days) {
    if (!at) return [...faults, `${zone.name}: nothing for ${day}`];
    const came = dayOf(at, zone, time);
    if (came !== day) fault(at, `expected ${day}, came for ${came}`);
    const next = nextIn(timetable, at);
    if (latestIn(timetable, at)?.getTime() !== at.getTime()) fault(at, "not the latest at its own moment");
    const until = new Date((next?.getTime() ?? 0) - SECOND_MS);
    if (latestIn(timetable, until)?.getTime() !== at.getTime()) fault(at, `not the latest at ${until.toISOString()}`);
    at = next;
  }
  if (at && dayOf(at, zone, time) <= LAST_DAY) fault(at, `comes after ${LAST_DAY}, which had its one`);
  return faults;
}

/**
 * The day an occurrence is for, by the runtime's word only: the day on which the clock shows the time, for the first time;
 * or the day whose time lies in the gap that ends just then.
 */
function dayOf(at: Date, zone: Zone, time: string): Day | "no day" {
  const atMs = at.getTime();
  const shown = zone.read(atMs);
  const [day = "", shownTime = ""] = shown.split(" ");
  // Half an hour and an hour and two: what clocks are set back by.
  if (shownTime === time) {
    const isSecond = [0.5, 1, 2].some((hours) => zone.read(atMs - hours * 3_600_000) === shown);
    return isSecond ? "no day" : day;
  }
  const before = zone.read(atMs - SECOND_MS);
  const skipped = [addDays(day, -1), day].filter((one) => before < `${one} ${time}` && `${one} ${time}` < shown);
  return skipped.length === 1 ? (skipped[0] ?? "no day") : "no day";
}
