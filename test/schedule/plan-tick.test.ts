import { expect, test } from "vitest";
import { type JobState, planTick } from "../../src/schedule/plan-tick.ts";

const NIGHT = new Date("2026-03-19T02:15:00Z");
const NIGHT_BEFORE = new Date("2026-03-18T02:15:00Z");
const state = (part: Partial<JobState> = {}): JobState => ({
  scheduledThrough: NIGHT_BEFORE,
  paused: false,
  running: false,
  ...part,
});
const after = (seconds: number) => new Date(NIGHT.getTime() + seconds * 1000);

test.each([
  { name: "at its scheduled time", now: after(0), trigger: "schedule" },
  { name: "a minute after it, because a timer did not fire", now: after(60), trigger: "schedule" },
  { name: "exactly five minutes after it", now: after(300), trigger: "schedule" },
  { name: "later than five minutes after it", now: after(301), trigger: "catchup" },
  { name: "hours after it", now: after(9 * 3600), trigger: "catchup" },
])("a job runs $name, triggered by $trigger", ({ now, trigger }) => {
  expect(planTick(NIGHT, state(), now)).toEqual({ scheduledFor: NIGHT, trigger });
});

test("a scheduled time that was run is not run again", () => {
  expect(planTick(NIGHT, state({ scheduledThrough: NIGHT }), after(30))).toBeUndefined();
});

test("a scheduled time before the last one that was run is not run, for example after the schedule was changed", () => {
  expect(planTick(NIGHT, state({ scheduledThrough: after(1) }), after(30))).toBeUndefined();
});

test("a job that never ran starts with its newest scheduled time", () => {
  const decision = planTick(NIGHT, state({ scheduledThrough: undefined }), after(9 * 3600));
  expect(decision).toEqual({ scheduledFor: NIGHT, trigger: "catchup" });
});

test("a job whose schedule has not occurred yet does nothing", () => {
  expect(planTick(undefined, state(), after(0))).toBeUndefined();
});

test("a paused job does nothing, whatever is due", () => {
  expect(planTick(NIGHT, state({ paused: true }), after(9 * 3600))).toBeUndefined();
});

test("a job waits for the end of the previous run", () => {
  expect(planTick(NIGHT, state({ running: true }), after(0))).toBeUndefined();
  expect(planTick(NIGHT, state(), after(3600))).toEqual({ scheduledFor: NIGHT, trigger: "catchup" });
});
