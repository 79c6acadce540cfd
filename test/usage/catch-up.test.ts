import { expect, test } from "vitest";
import { type DueSlice, isDueForRetry } from "../../src/usage/backfill.ts";

const NOW = new Date("2026-03-19T12:00:00Z");
const hoursAgo = (hours: number) => new Date(NOW.getTime() - hours * 3_600_000);
const slice = (part: Partial<DueSlice>): DueSlice => ({
  seriesId: 1,
  day: "2026-03-18",
  status: "failed",
  failures: 1,
  attemptedAt: hoursAgo(1),
  ...part,
});

test("a slice that was never read is read at once", () => {
  expect(isDueForRetry(slice({ status: "missing", failures: 0, attemptedAt: null }), NOW)).toBe(true);
});

test.each([
  { failures: 0, hours: 1 },
  { failures: 1, hours: 1 },
  { failures: 2, hours: 2 },
  { failures: 3, hours: 4 },
  { failures: 5, hours: 16 },
  { failures: 6, hours: 24 },
  { failures: 400, hours: 24 },
])("after $failures failures in a row a slice is retried after $hours hours", ({ failures, hours }) => {
  expect(isDueForRetry(slice({ failures, attemptedAt: hoursAgo(hours) }), NOW)).toBe(true);
  expect(isDueForRetry(slice({ failures, attemptedAt: hoursAgo(hours - 0.001) }), NOW)).toBe(false);
});

test.each([
  { doubtedHours: 0, hours: 1 },
  { doubtedHours: 1, hours: 1 },
  { doubtedHours: 6, hours: 6 },
  { doubtedHours: 400, hours: 24 },
])(
  "a slice that had been in doubt for $doubtedHours hours at its last reading is read again after $hours hours",
  ({ doubtedHours, hours }) => {
    const doubted = (hoursSinceReading: number) =>
      slice({
        status: "suspect",
        failures: 0,
        attemptedAt: hoursAgo(hoursSinceReading),
        doubtedAt: hoursAgo(hoursSinceReading + doubtedHours),
      });
    expect(isDueForRetry(doubted(hours), NOW)).toBe(true);
    expect(isDueForRetry(doubted(hours - 0.001), NOW)).toBe(false);
  },
);
