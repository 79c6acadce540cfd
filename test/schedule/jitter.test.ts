import { expect, test } from "vitest";
import { jitterMs } from "../../src/schedule/due.ts";

const NIGHT = new Date("2026-03-29T02:15:00Z");
const nights = Array.from({ length: 20_000 }, (_, i) => new Date(NIGHT.getTime() + i * 86_400_000));

// Replicas of two versions must agree while one replaces the other.
test("the jitter of a job at a scheduled time is the same in every version, and 0 without jitter", () => {
  expect(jitterMs("nightly", NIGHT, 0)).toBe(0);
  expect(jitterMs("nightly", NIGHT, 600)).toBe(73_874);
});

test.each([1, 600, 3_600])(
  "with jitterSeconds %i the delays are whole milliseconds below it, evenly spread",
  (seconds) => {
    const tenths = Array.from({ length: 10 }, () => 0);
    for (const night of nights) {
      const delayMs = jitterMs("nightly", night, seconds);
      expect(Number.isInteger(delayMs)).toBe(true);
      const tenth = Math.floor(delayMs / (seconds * 100));
      tenths[tenth] = (tenths[tenth] ?? Number.NaN) + 1;
    }
    // Each tenth should have 2,000 delays. Random delays would be within 200 of that in all but one of 300,000 tests.
    expect(tenths).toHaveLength(10);
    for (const count of tenths) expect(Math.abs(count - nights.length / 10)).toBeLessThan(200);
  },
);

test("jobs of one scheduled time are spread, whatever their names", () => {
  const delays = new Set(nights.map((_, i) => jitterMs(`export-${i}`, NIGHT, 3_600)));
  expect(delays.size).toBeGreaterThan(19_900);
});
