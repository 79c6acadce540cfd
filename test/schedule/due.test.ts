import { expect, onTestFinished, test } from "vitest";
import type { StoredJob } from "../../src/db/jobs/jobs.ts";
import { nextOccurrence, setTimers } from "../../src/schedule/cron.ts";
import { overdueSince, planTick, waitingSince } from "../../src/schedule/due.ts";

const DAILY = { schedule: "15 2 * * *", timezone: "UTC" };
/** The last day of a month is never its first Monday. */
const NEVER = { ...DAILY, schedule: "0 0 L * 1#1" };
const at = (time: string) => new Date(`2026-03-${time}Z`);

function stored(part: Partial<StoredJob> = {}): StoredJob {
  return {
    ...{ kind: "export", name: "nightly", scheduledThrough: at("18T02:15:00"), createdAt: at("01T12:00:00") },
    ...{ pause: undefined, resumedAt: undefined },
    ...part,
  };
}

test("a job runs next at the first scheduled time after now", () => {
  expect(nextOccurrence(DAILY, at("18T02:14:59"))).toEqual(at("18T02:15:00"));
  expect(nextOccurrence(DAILY, at("18T02:15:00"))).toEqual(at("19T02:15:00"));
});

test("a job whose schedule never occurs has no next run", () => {
  expect(nextOccurrence(NEVER, at("18T12:00:00"))).toBeUndefined();
});

test("a job waits from its scheduled time on, and is overdue after three minutes", () => {
  expect(waitingSince(DAILY, stored(), at("19T02:14:59"))).toBeUndefined();
  expect(waitingSince(DAILY, stored(), at("19T02:15:00"))).toEqual(at("19T02:15:00"));
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
  const job = stored({ scheduledThrough: undefined });
  expect(waitingSince(DAILY, job, at("01T12:00:00"))).toEqual(at("01T12:00:00"));
  expect(overdueSince(NEVER, job, at("25T12:00:00"))).toBeUndefined();
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
  ["if its scheduled time was run", DAILY, { scheduledThrough: NIGHT }, false],
  ["if a later time was run, as before the schedule was changed", DAILY, { scheduledThrough: after(1) }, false],
  ["if its schedule has never occurred", NEVER, {}, false],
  ["while it is paused", DAILY, { pause: { at: NIGHT, why: "moving house", by: "me" } }, false],
  ["until the previous run has ended", DAILY, {}, true],
] as const)("a job does not run %s", (_, job, part, isRunning) => {
  expect(planTick(job, stored(part), isRunning, after(30))).toBeUndefined();
});

function setTestTimers(intervalMs: number, ...schedules: readonly string[]) {
  const fired: number[] = [];
  const zoned = schedules.map((schedule) => ({ schedule, timezone: "Europe/Vienna" }));
  const stop = setTimers(zoned, intervalMs, () => fired.push(Date.now()));
  onTestFinished(stop);
  return { fired, stop };
}

test("timers fire at the times of a schedule even if another schedule never occurs", async () => {
  const { fired } = setTestTimers(60_000, "0 0 L * 1#1", "* * * * * *");
  await expect.poll(() => fired.length).toBeGreaterThan(1);
});

test("timers also fire at every interval", async () => {
  const { fired } = setTestTimers(50, "0 0 1 1 *");
  await expect.poll(() => fired.length).toBeGreaterThan(1);
});

test("stopped timers fire no more", async () => {
  const { fired, stop } = setTestTimers(50, "* * * * * *");
  await expect.poll(() => fired.length).toBeGreaterThan(1);
  stop();
  const before = fired.length;
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(fired).toHaveLength(before);
});
