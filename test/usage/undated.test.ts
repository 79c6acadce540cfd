import { expect, test } from "vitest";
import { dayOfUndated, decideSnapshot, provenSpan, type SnapshotStep } from "../../src/usage/slice.ts";

const NEWEST = { fetchNo: 5, contentHash: "a" };

test.each([
  ["the first reading is new", undefined, { fetchNo: 1, contentHash: "a" }, "new"],
  ["other numbers are new", NEWEST, { fetchNo: 6, contentHash: "b" }, "new"],
  ["the same numbers of a later fetch are unchanged", NEWEST, { fetchNo: 6, contentHash: "a" }, "unchanged"],
  ["the same fetch is repeated", NEWEST, { fetchNo: 5, contentHash: "a" }, "repeated"],
  ["an older fetch is stale, whatever its numbers", NEWEST, { fetchNo: 4, contentHash: "a" }, "stale"],
] as const)("%s", (_, newest, incoming, decision) => {
  expect(decideSnapshot(newest, incoming)).toBe(decision);
});

test("an undated answer that counts as a day is stored under the day of the run, or the day before it", () => {
  expect(dayOfUndated("2026-03-01", "day")).toBe("2026-03-01");
  expect(dayOfUndated("2026-03-01", "day-before")).toBe("2026-02-28");
});

/** The steps between consecutive snapshots, from their times and amounts. */
function stepsOf(readings: readonly (readonly [at: string, amount: number])[]): SnapshotStep[] {
  return readings.slice(1).map(([at, amount], i) => {
    const [previousAt, before] = readings[i] ?? ["", 0];
    const change = amount > before ? "grew" : amount < before ? "fell" : "same";
    return {
      sameDay: at.slice(0, 2) === previousAt.slice(0, 2),
      takenAt: new Date(`2026-03-${at}:00Z`),
      previousTakenAt: new Date(`2026-03-${previousAt}:00Z`),
      change,
      halved: amount * 2 < before,
    };
  });
}

/** Two snapshots a day, at 02:00 and 20:00. The first has the day's amount, the second is larger by `growth` times that amount. */
function twiceADay(amounts: readonly number[], growth = 0): SnapshotStep[] {
  return stepsOf(
    amounts.flatMap((amount, i) => {
      const day = String(i + 1).padStart(2, "0");
      return [[`${day}T02:00`, amount] as const, [`${day}T20:00`, amount * (1 + growth)] as const];
    }),
  );
}

/** The usage of each day of two weeks, from a Monday on. */
const WEEKS = [900, 950, 1000, 980, 960, 300, 280, 910, 940, 990, 1010, 970, 310, 270];
const summed = (days: number) =>
  WEEKS.map((_, i) => WEEKS.slice(Math.max(0, i + 1 - days), i + 1).reduce((a, b) => a + b));
const weekly = WEEKS.map((_, i) => WEEKS.slice(i - (i % 7), i + 1).reduce((a, b) => a + b));

test.each<[string, readonly SnapshotStep[], string | undefined]>([
  ["no snapshot", [], undefined],
  [
    "one step that grew from a day to the next",
    stepsOf([
      ["01T02:00", 1],
      ["02T02:00", 2],
    ]),
    undefined,
  ],
  [
    "a total that grows within a day",
    stepsOf([
      ["01T02:00", 1],
      ["01T20:00", 2],
    ]),
    "running-total",
  ],
  [
    "a total that grows every night, read once a day",
    stepsOf(summed(100).map((n, i) => [`${String(i + 1).padStart(2, "0")}T02:00`, n])),
    undefined,
  ],
  ["a total that grows at night, read twice a day", twiceADay(summed(100)), undefined],
  ["the usage of the day before", twiceADay(WEEKS), "day-before"],
  [
    "the usage of the day before, read once a day",
    stepsOf(WEEKS.map((n, i) => [`${String(i + 1).padStart(2, "0")}T02:00`, n])),
    undefined,
  ],
  ["the sum of the last seven days", twiceADay(summed(7)), undefined],
  ["the sum of the last seven days up to now", twiceADay(summed(7), 0.01), undefined],
  ["a total of the week, counted anew on Mondays", twiceADay(weekly), undefined],
  ["today's usage up to now", twiceADay([10, 12, 9, 11], 20), "day"],
  ["today's usage up to now, over one midnight only", twiceADay([10, 12], 20), undefined],
  [
    "two readings a minute apart, then falls",
    stepsOf([
      ["01T02:00", 900],
      ["01T02:01", 900],
      ["02T02:00", 300],
      ["03T02:00", 200],
    ]),
    undefined,
  ],
])("what snapshots prove: %s", (_, steps, span) => {
  expect(provenSpan(steps)).toBe(span);
});
