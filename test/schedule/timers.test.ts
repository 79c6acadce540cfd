import { expect, onTestFinished, test } from "vitest";
import { setTimers } from "../../src/schedule/cron.ts";

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
