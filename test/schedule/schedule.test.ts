import { expect, onTestFinished, test, vi } from "vitest";
import type { StoredJob } from "../../src/db/jobs/jobs.ts";
import {
  latestOccurrence,
  nextOccurrence,
  nextOccurrences,
  overdueSince,
  planTick,
  setTimers,
  waitingSince,
} from "../../src/schedule/schedule.ts";

const DAILY = { schedule: "15 2 * * *", timezone: "UTC" };
const at = (time: string) => new Date(`2026-03-${time}Z`);

function stored(part: Partial<StoredJob> = {}): StoredJob {
  return {
    ...{ kind: "export", name: "nightly", scheduledThrough: at("18T02:15:00"), createdAt: at("01T12:00:00") },
    ...{ pause: undefined, resumedAt: undefined },
    ...part,
  };
}

test("a job runs next at the first scheduled time after now", () => {
  expect(nextOccurrence(DAILY, at("18T02:14:59.999"))).toEqual(at("18T02:15:00"));
  expect(nextOccurrence(DAILY, at("18T02:15:00"))).toEqual(at("19T02:15:00"));
});

test("a job waits from its scheduled time on", () => {
  expect(waitingSince(DAILY, stored(), at("19T02:14:59"))).toBeUndefined();
  expect(waitingSince(DAILY, stored(), at("19T02:15:00"))).toEqual(at("19T02:15:00"));
});

test("a job is overdue three minutes after its scheduled time", () => {
  expect(overdueSince(DAILY, stored(), at("19T02:18:00"))).toBeUndefined();
  expect(overdueSince(DAILY, stored(), at("19T02:18:01"))).toEqual(at("19T02:15:00"));
});

test("a job that missed several scheduled times is overdue since the first of them", () => {
  expect(overdueSince(DAILY, stored(), at("25T12:00:00"))).toEqual(at("19T02:15:00"));
});

test("a job that is not registered, or is paused, is never overdue", () => {
  const pause = { at: at("18T12:00:00"), why: "moving house", by: "me" };
  expect(overdueSince(DAILY, undefined, at("25T12:00:00"))).toBeUndefined();
  expect(overdueSince(DAILY, stored({ pause }), at("25T12:00:00"))).toBeUndefined();
});

test("a scheduled time during a pause counts as due from the end of the pause on", () => {
  const job = stored({ resumedAt: at("20T09:00:00") });
  expect(overdueSince(DAILY, job, at("20T09:03:00"))).toBeUndefined();
  expect(overdueSince(DAILY, job, at("20T09:03:01"))).toEqual(at("20T09:00:00"));
});

test("a job that never ran has been due since it was registered", () => {
  expect(waitingSince(DAILY, stored({ scheduledThrough: undefined }), at("01T12:00:00"))).toEqual(at("01T12:00:00"));
});

const NIGHT = at("19T02:15:00");
const after = (seconds: number) => new Date(NIGHT.getTime() + seconds * 1000);

test.each([
  [0, "schedule"],
  [60, "schedule"],
  [300, "schedule"],
  [301, "catchup"],
  [9 * 3600, "catchup"],
])("a job that runs %i seconds after its scheduled time is triggered by %s", (seconds, trigger) => {
  expect(planTick(DAILY, stored(), false, after(seconds))).toEqual({ scheduledFor: NIGHT, trigger });
});

test("a job that never ran starts with its newest scheduled time", () => {
  const decision = planTick(DAILY, stored({ scheduledThrough: undefined }), false, after(9 * 3600));
  expect(decision).toEqual({ scheduledFor: NIGHT, trigger: "catchup" });
});

test.each([
  ["if its scheduled time was run", { scheduledThrough: NIGHT }, false],
  ["if a later time was run, by an earlier schedule", { scheduledThrough: after(1) }, false],
  ["while it is paused", { pause: { at: NIGHT, why: "moving house", by: "me" } }, false],
  ["until the previous run has ended", {}, true],
] as const)("a job does not run %s", (_, part, isRunning) => {
  expect(planTick(DAILY, stored(part), isRunning, after(30))).toBeUndefined();
});

/** Returns how often timers fire in two seconds, and in two more after they were stopped. */
async function firings(intervalMs: number, ...schedules: readonly string[]): Promise<readonly number[]> {
  vi.useFakeTimers({ now: new Date("2026-03-02T12:00:00.500Z") });
  onTestFinished(() => void vi.useRealTimers());
  let fired = 0;
  const zoned = schedules.map((schedule) => ({ schedule, timezone: "Europe/Vienna" }));
  const stop = setTimers(zoned, intervalMs, () => fired++);
  // node-cron sets its next timer in a promise, so the time is advanced asynchronously.
  await vi.advanceTimersByTimeAsync(2_000);
  const before = fired;
  stop();
  await vi.advanceTimersByTimeAsync(2_000);
  return [before, fired - before];
}

test.each([
  ["the times of a schedule, even beside one whose times are all skipped", 60_000, ["30 2 * 3 0L", "* * * * * *"], 2],
  ["every interval", 500, ["0 0 1 1 *"], 4],
])("timers fire at %s until they are stopped", async (_, intervalMs, schedules, count) => {
  expect(await firings(intervalMs, ...schedules)).toEqual([count, 0]);
});

/** All occurrences from `from` until `until`, written like "2026-03-29T01:00Z". */
function occurrencesBetween(schedule: string, timezone: string, from: string, until: string): string[] {
  const after = new Date(new Date(from).getTime() - 1);
  return nextOccurrences({ schedule, timezone }, after, 500)
    .filter((moment) => moment <= new Date(until))
    .map(short);
}

function short(moment: Date): string {
  return moment.toISOString().replace(/(:00)?\.000Z$/, "Z");
}

// Three days: before, on and after the day on which the clock changes.
test.each([
  ["a time in the skipped hour occurs at its end", "2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
  ["a time that comes twice occurs the first time", "2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
])("in Vienna %s", (_name, ...days) => {
  expect(occurrencesBetween("30 2 * * *", "Europe/Vienna", days[0], days[2])).toEqual(days);
});

test("a schedule of several times a day does not occur in the skipped hour", () => {
  const occurrences = occurrencesBetween("0,30 2,3 * * *", "Europe/Vienna", "2026-03-29T00:00Z", "2026-03-29T12:00Z");
  expect(occurrences).toEqual(["2026-03-29T01:00Z", "2026-03-29T01:30Z"]);
});

test.each([
  ["0 * * * *", "Europe/Vienna", "2026-10-24T23:00Z", ["23:00Z", "00:00Z", "01:00Z", "02:00Z", "03:00Z"]],
  // 01:45 comes twice: the second time half an hour after the first.
  ["45 * * * *", "Australia/Lord_Howe", "2026-04-04T13:30Z", ["13:45Z", "14:45Z", "15:15Z", "16:15Z", "17:15Z"]],
  // Apia skipped this day.
  ["0 * 30 12 *", "Pacific/Apia", "2011-12-29T00:00Z", []],
])(
  "a schedule of every hour occurs whenever the clock shows its time: %s in %s from %s",
  (schedule, timezone, from, times) => {
    const until = new Date(new Date(from).getTime() + 4 * 3_600_000).toISOString();
    expect(occurrencesBetween(schedule, timezone, from, until).map((moment) => moment.slice(11))).toEqual(times);
  },
);

test.each([
  ["at the scheduled time itself", "15 2 * * *", "2026-03-29T02:15:00.000Z", "2026-03-29T02:15Z"],
  ["a millisecond before the scheduled time", "15 2 * * *", "2026-03-29T02:14:59.999Z", "2026-03-28T02:15Z"],
  ["of a schedule of every ten seconds", "*/10 * * * * *", "2026-03-29T02:15:29.999Z", "2026-03-29T02:15:20Z"],
  ["in the year before", "0 0 25 12 *", "2026-03-29T00:00:00.000Z", "2025-12-25T00:00Z"],
  ["of a schedule of first Mondays", "0 5 1-7 * 1", "2026-03-29T00:00:00.000Z", "2026-03-02T05:00Z"],
  ["of a schedule of leap days", "0 0 29 2 *", "2024-02-28T00:00:00.000Z", "2020-02-29T00:00Z"],
])("the latest occurrence is found: %s", (_case, schedule, at, expected) => {
  expect(short(latestOccurrence({ schedule, timezone: "UTC" }, new Date(at)) ?? new Date(0))).toBe(expected);
});

const NIGHTLY = "30 2 * * *";
const HOURLY = "30 * * * *";

test.each([
  ["a second before the skipped hour", NIGHTLY, "2026-03-29T00:59:59Z", "2026-03-28T01:30Z"],
  ["before the repeated time", NIGHTLY, "2026-10-25T01:29:59Z", "2026-10-25T00:30Z"],
  ["at the repeated time", NIGHTLY, "2026-10-25T01:30:00Z", "2026-10-25T00:30Z"],
  ["before the repeated time, hourly", HOURLY, "2026-10-25T01:29:59Z", "2026-10-25T00:30Z"],
  ["at the repeated time, hourly", HOURLY, "2026-10-25T01:30:00Z", "2026-10-25T01:30Z"],
  ["after the skipped hour, hourly", HOURLY, "2026-03-29T01:29:59Z", "2026-03-29T00:30Z"],
])("in Vienna the latest occurrence is found: %s", (_case, schedule, at, expected) => {
  expect(short(latestOccurrence({ schedule, timezone: "Europe/Vienna" }, new Date(at)) ?? new Date(0))).toBe(expected);
});

test.each([
  ["a second before the skipped hour", NIGHTLY, "2026-03-29T00:59:59Z", "2026-03-29T01:00Z"],
  ["at the end of the skipped hour", NIGHTLY, "2026-03-29T01:00:00Z", "2026-03-30T00:30Z"],
  ["before the repeated time", NIGHTLY, "2026-10-25T01:29:59Z", "2026-10-26T01:30Z"],
  ["before the repeated time, hourly", HOURLY, "2026-10-25T01:29:59Z", "2026-10-25T01:30Z"],
])("in Vienna the next occurrence is found: %s", (_case, schedule, after, expected) => {
  expect(short(nextOccurrence({ schedule, timezone: "Europe/Vienna" }, new Date(after)) ?? new Date(0))).toBe(expected);
});

test("nextOccurrences returns as many occurrences as are asked for", () => {
  const weekly = { schedule: "0 6 * * MON", timezone: "UTC" };
  expect(nextOccurrences(weekly, new Date("2026-03-29T00:00:00Z"), 0)).toEqual([]);
  const two = nextOccurrences(weekly, new Date("2026-03-29T00:00:00Z"), 2);
  expect(two.map(short)).toEqual(["2026-03-30T06:00Z", "2026-04-06T06:00Z"]);
});
