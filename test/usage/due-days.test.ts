import { expect, test } from "vitest";
import { type DueDays, dueDays } from "../../src/usage/plan.ts";
import { sampleJob } from "./sample-request.ts";

const TODAY = "2026-03-18";
const YESTERDAY = "2026-03-17";

test("a scheduled run makes its whole window due, up to yesterday", () => {
  expect(dueDays(sampleJob({ window: { days: 40, today: false } }), TODAY)).toEqual({
    first: "2026-02-06",
    oldest: { start: "2026-02-06", end: YESTERDAY },
    through: YESTERDAY,
  });
});

test("today is read and never due", () => {
  expect(dueDays(sampleJob({ window: { days: 1, today: true } }), TODAY)?.through).toBe(YESTERDAY);
  expect(dueDays(sampleJob(), TODAY, { days: [TODAY] })?.through).toBe(YESTERDAY);
});

test("without a window no day is due before the answer is known", () => {
  const { window: _, ...job } = sampleJob();
  expect(dueDays(job, TODAY)).toBeUndefined();
});

test.each<[string, readonly string[], DueDays]>([
  [
    "before yesterday give no first due day",
    ["2025-06-01", "2025-06-02"],
    { first: undefined, oldest: { start: "2025-06-01", end: "2025-06-02" }, through: "2025-06-02" },
  ],
  [
    "up to yesterday are due",
    ["2026-03-16", YESTERDAY],
    { first: "2026-03-16", oldest: { start: "2026-03-16", end: YESTERDAY }, through: YESTERDAY },
  ],
  [
    "up to yesterday are due, except those before a gap",
    ["2025-06-01", "2026-03-16", YESTERDAY],
    { first: "2026-03-16", oldest: { start: "2025-06-01", end: "2025-06-01" }, through: YESTERDAY },
  ],
])("days that were picked %s", (_, days, due) => {
  expect(dueDays(sampleJob(), TODAY, { days })).toEqual(due);
});
