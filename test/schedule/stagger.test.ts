import { expect, test } from "vitest";
import { nextRunAt, overdueSince, startDelayMs } from "../../src/schedule/due.ts";
import { planTick } from "../../src/schedule/plan-tick.ts";

const NIGHT = new Date("2026-03-10T04:00:00Z");
const MINUTE_MS = 60_000;

const job = (of: string, minutes?: number, part: { schedule?: string; jitterSeconds?: number } = {}) => ({
  ...{ name: `fleet/${of}`, schedule: "0 4 * * *", timezone: "UTC", jitterSeconds: 0, ...part },
  stagger: { of, minutes },
});
const projects = Array.from({ length: 300 }, (_, i) => `project-${i}`);
const delays = (minutes?: number, part = {}) => projects.map((one) => startDelayMs(job(one, minutes, part), NIGHT));

test("projects are spread over the stagger, and with the minute until the next tick none is later than it", () => {
  const all = delays(60);
  expect(Math.max(...all)).toBeLessThan(59 * MINUTE_MS);
  const quarters = [0, 1, 2, 3].map(
    (quarter) => all.filter((ms) => Math.floor(ms / (59 * MINUTE_MS) / 0.25) === quarter).length,
  );
  for (const count of quarters) expect(count).toBeGreaterThan(50);
});

test("the moment of a project is the same at every scheduled time and for every replica", () => {
  expect(startDelayMs(job("project-1", 60), NIGHT)).toBe(
    startDelayMs(job("project-1", 60), new Date("2026-03-11T04:00:00Z")),
  );
  expect(startDelayMs(job("project-1", 60), NIGHT)).not.toBe(startDelayMs(job("project-2", 60), NIGHT));
});

test.each([
  [undefined, "0 4 * * *", 24 * 60],
  [undefined, "*/30 * * * *", 30],
  [600, "*/30 * * * *", 30],
  [10, "0 4 * * *", 10],
  [1, "0 4 * * *", 0],
  [0, "0 4 * * *", 0],
])("with a stagger of %s minutes and the schedule %s all begin within %i minutes", (minutes, schedule, within) => {
  const latest = Math.max(...delays(minutes, { schedule }));
  expect(latest).toBeLessThanOrEqual(Math.max(within - 1, 0) * MINUTE_MS);
  if (within > 1) expect(latest).toBeGreaterThan((within - 1) * MINUTE_MS * 0.9);
});

test("the jitter of a job is part of its stagger", () => {
  expect(Math.max(...delays(10, { jitterSeconds: 300 }))).toBeLessThan(9 * MINUTE_MS);
});

test("each project is planned once a scheduled time, whatever its share of the time until the next one", () => {
  for (const project of projects) {
    const one = job(project, undefined, { schedule: "0 * * * *" });
    let scheduledThrough: Date | undefined = NIGHT;
    const started: number[] = [];
    for (let minute = 0; minute < 180; minute++) {
      const now = new Date(NIGHT.getTime() + 60 * MINUTE_MS + minute * MINUTE_MS);
      const latest = new Date(Math.floor(now.getTime() / (60 * MINUTE_MS)) * 60 * MINUTE_MS);
      const timing = { latest, delayMs: startDelayMs(one, latest), overlap: "skip" } as const;
      const decision = planTick(timing, { scheduledThrough, paused: false, running: false }, now);
      if (decision.kind !== "run") continue;
      started.push(now.getTime());
      scheduledThrough = decision.scheduledFor;
    }
    expect(started).toHaveLength(3);
  }
});

test("a staggered job that was not due yet at this scheduled time runs next at its own moment, and is overdue only after it", () => {
  const one = job("project-7", 60);
  const ownMs = NIGHT.getTime() + startDelayMs(one, NIGHT);
  expect(nextRunAt(one, new Date(NIGHT.getTime() + 1000))).toEqual(new Date(ownMs));
  expect(nextRunAt(one, new Date(ownMs))).toEqual(new Date(ownMs + 24 * 60 * MINUTE_MS));
  const stored = {
    ...{ kind: "rotation" as const, name: one.name, pause: undefined, resumedAt: undefined },
    scheduledThrough: new Date("2026-03-09T04:00:00Z"),
    createdAt: new Date("2026-01-01T00:00:00Z"),
  };
  expect(overdueSince(one, stored, new Date(ownMs - 1000))).toBeUndefined();
  expect(overdueSince(one, stored, new Date(ownMs + 4 * MINUTE_MS))).toEqual(new Date(ownMs));
});
