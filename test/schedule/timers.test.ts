import { expect, onTestFinished, test } from "vitest";
import { setTimers } from "../../src/schedule/cron.ts";

function setTestTimers(...schedules: readonly string[]) {
  const fired: number[] = [];
  const timers = setTimers(
    schedules.map((schedule) => ({ schedule, timezone: "Europe/Vienna" })),
    () => fired.push(Date.now()),
  );
  onTestFinished(timers.stop);
  return { fired, timers };
}

test("a timer fires at the times of its schedule", async () => {
  const { fired } = setTestTimers("* * * * * *");
  await expect.poll(() => fired.length).toBeGreaterThan(1);
});

test("fireIn makes the timers fire once more, and a second call replaces the first", async () => {
  const { fired, timers } = setTestTimers();
  const startedMs = Date.now();
  timers.fireIn(60_000);
  timers.fireIn(100);
  await expect.poll(() => fired.length).toBe(1);
  expect(fired[0]).toBeGreaterThanOrEqual(startedMs + 99);
});

test("fireIn with a negative time fires at once", async () => {
  const { fired, timers } = setTestTimers();
  timers.fireIn(-1);
  await expect.poll(() => fired.length).toBe(1);
});

test("a schedule without any occurrence does not keep the others from firing", async () => {
  const { fired } = setTestTimers("0 0 L * 1#1", "* * * * * *");
  await expect.poll(() => fired.length).toBeGreaterThan(0);
});

test("stopped timers do not fire", async () => {
  const { fired, timers } = setTestTimers("* * * * * *");
  timers.fireIn(50);
  timers.stop();
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(fired).toEqual([]);
});
