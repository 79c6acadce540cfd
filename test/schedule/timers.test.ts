import { expect, onTestFinished, test } from "vitest";
import { setTimers } from "../../src/schedule/timers.ts";

function alarms(...schedules: readonly string[]) {
  const rings: number[] = [];
  const set = setTimers(
    schedules.map((schedule) => ({ schedule, timezone: "Europe/Vienna" })),
    () => rings.push(Date.now()),
  );
  onTestFinished(set.stop);
  return { rings, set };
}

test("a timer fires at the moments of its schedule", async () => {
  const { rings } = alarms("* * * * * *");
  await expect.poll(() => rings.length).toBeGreaterThan(1);
});

test("a timer can be set for one more moment, and the last setting counts", async () => {
  const { rings, set } = alarms();
  const startedMs = Date.now();
  set.fireIn(60_000);
  set.fireIn(100);
  await expect.poll(() => rings.length).toBe(1);
  expect(rings[0]).toBeGreaterThanOrEqual(startedMs + 99);
});

test("a timer for a past moment fires at once", async () => {
  const { rings, set } = alarms();
  set.fireIn(-1);
  await expect.poll(() => rings.length).toBe(1);
});

test("a schedule that never comes does not keep the others from firing", async () => {
  const { rings } = alarms("0 0 L * 1#1", "* * * * * *");
  await expect.poll(() => rings.length).toBeGreaterThan(0);
});

test("stopped timers do not fire", async () => {
  const { rings, set } = alarms("* * * * * *");
  set.fireIn(50);
  set.stop();
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(rings).toEqual([]);
});
