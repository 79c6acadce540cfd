import { expect, test } from "vitest";
import { type JobState, type JobTiming, planTick } from "../../src/schedule/plan-tick.ts";

const NIGHT = new Date("2026-03-19T02:15:00Z");
const NIGHT_BEFORE = new Date("2026-03-18T02:15:00Z");
const timing = (part: Partial<JobTiming> = {}): JobTiming => ({ latest: NIGHT, delayMs: 0, overlap: "skip", ...part });
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
  expect(planTick(timing(), state(), now)).toEqual({ kind: "run", scheduledFor: NIGHT, trigger });
});

test("a scheduled time that was run or skipped is not run again", () => {
  expect(planTick(timing(), state({ scheduledThrough: NIGHT }), after(30))).toEqual({ kind: "none" });
});

test("a scheduled time before the last one that was run is not run, for example after the schedule was changed", () => {
  expect(planTick(timing(), state({ scheduledThrough: after(1) }), after(30))).toEqual({ kind: "none" });
});

test("a job that never ran starts with its newest scheduled time", () => {
  const decision = planTick(timing(), state({ scheduledThrough: undefined }), after(9 * 3600));
  expect(decision).toEqual({ kind: "run", scheduledFor: NIGHT, trigger: "catchup" });
});

test("a job whose schedule has not occurred yet does nothing", () => {
  expect(planTick(timing({ latest: undefined }), state(), after(0))).toEqual({ kind: "none" });
});

test("a job waits until its jitter is over, and its run then counts as on time", () => {
  const jittered = timing({ delayMs: 600_000 });
  expect(planTick(jittered, state(), after(599))).toEqual({ kind: "wait", until: after(600) });
  expect(planTick(jittered, state(), after(600))).toEqual({ kind: "run", scheduledFor: NIGHT, trigger: "schedule" });
});

test("a paused job does nothing, whatever is due", () => {
  expect(planTick(timing(), state({ paused: true }), after(9 * 3600))).toEqual({ kind: "none" });
});

test("a scheduled time is skipped if the previous run is still running", () => {
  expect(planTick(timing(), state({ running: true }), after(0))).toEqual({ kind: "skip", scheduledFor: NIGHT });
});

test('with overlap "queue" the job waits for the end of the previous run', () => {
  const queued = timing({ overlap: "queue" });
  expect(planTick(queued, state({ running: true }), after(0))).toEqual({ kind: "none" });
  expect(planTick(queued, state(), after(3600))).toEqual({ kind: "run", scheduledFor: NIGHT, trigger: "catchup" });
});

test("a scheduled time whose jitter is not over is not skipped, even if the previous run is still running", () => {
  const decision = planTick(timing({ delayMs: 60_000 }), state({ running: true }), after(30));
  expect(decision).toEqual({ kind: "wait", until: after(60) });
});
