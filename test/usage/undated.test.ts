import { expect, test } from "vitest";
import { dayOfUndated, decideSnapshot } from "../../src/usage/slice.ts";

const NEWEST = { fetchNo: 5, contentHash: "a" };

test.each([
  ["the first reading is new", undefined, { fetchNo: 1, contentHash: "a" }, "replace"],
  ["other numbers are new", NEWEST, { fetchNo: 6, contentHash: "b" }, "replace"],
  ["the same numbers of a later fetch are unchanged", NEWEST, { fetchNo: 6, contentHash: "a" }, "unchanged"],
  ["the same fetch is not stored again", NEWEST, { fetchNo: 5, contentHash: "a" }, "stale"],
  ["an older fetch is stale, whatever its numbers", NEWEST, { fetchNo: 4, contentHash: "a" }, "stale"],
] as const)("%s", (_, newest, incoming, decision) => {
  expect(decideSnapshot(newest, incoming)).toBe(decision);
});

test("an undated answer that counts as a day is stored under the day of the run, or the day before it", () => {
  expect(dayOfUndated("2026-03-01", "day")).toBe("2026-03-01");
  expect(dayOfUndated("2026-03-01", "day-before")).toBe("2026-02-28");
});
