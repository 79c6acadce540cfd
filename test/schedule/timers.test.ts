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

test("an alarm rings at the moments of its schedule", async () => {
  const { rings } = alarms("* * * * * *");
  await expect.poll(() => rings.length).toBeGreaterThan(1);
});

test("an alarm that is set for one more moment rings then, and the last setting counts", async () => {
  const { rings, set } = alarms();
  const startedMs = Date.now();
  set.fireIn(60_000);
  set.fireIn(100);
  await expect.poll(() => rings.length).toBe(1);
  expect(rings[0]).toBeGreaterThanOrEqual(startedMs + 99);
});

test("a moment that is past rings at once", async () => {
  const { rings, set } = alarms();
  set.fireIn(-1);
  await expect.poll(() => rings.length).toBe(1);
});

test("a schedule that names no moment at all does not keep the others from ringing", async () => {
  const { rings } = alarms("0 0 L * 1#1", "* * * * * *");
  await expect.poll(() => rings.length).toBeGreaterThan(0);
});

test("what is stopped rings no more", async () => {
  const { rings, set } = alarms("* * * * * *");
  set.fireIn(50);
  set.stop();
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(rings).toEqual([]);
});
