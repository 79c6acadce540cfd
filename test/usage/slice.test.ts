import { expect, test } from "vitest";
import { decideSlice, type IncomingSlice, type SliceDecision, type StoredSlice } from "../../src/usage/slice.ts";

const stored: StoredSlice = { fetchNo: 5, contentHash: "full", rows: 3, suspectRun: undefined };
const incoming: IncomingSlice = { fetchNo: 6, runId: "run-2", contentHash: "other", rows: 4 };
const empty = { contentHash: "empty", rows: 0 };
const never: StoredSlice = { fetchNo: 0, contentHash: undefined, rows: 0, suspectRun: undefined };

test.each<[string, Partial<StoredSlice>, Partial<IncomingSlice>, SliceDecision]>([
  ["the first rows are stored", never, {}, "replace"],
  ["a first answer without rows is stored as that", never, empty, "replace"],
  ["other numbers replace", {}, {}, "replace"],
  ["other numbers of fewer rows replace", {}, { rows: 1 }, "replace"],
  ["the same numbers are unchanged", {}, { contentHash: "full", rows: 3 }, "unchanged"],
  ["a day that was empty and is empty again is unchanged", empty, empty, "unchanged"],
  ["a day that was empty and has rows now is replaced", empty, {}, "replace"],
  ["the same fetch again is no older than itself", { fetchNo: 6 }, {}, "replace"],
  ["an older fetch is stale", { fetchNo: 7 }, {}, "stale"],
  ["an older fetch with the same numbers is stale too", { fetchNo: 7 }, { contentHash: "full" }, "stale"],
  ["an older empty fetch is stale, not suspect", { fetchNo: 7 }, empty, "stale"],
  ["rows that vanish all at once are suspect", {}, empty, "suspect"],
  ["the run that made a slice suspect can't confirm it", { suspectRun: "run-2" }, empty, "suspect"],
  ["another run that finds it empty confirms it", { suspectRun: "run-1" }, empty, "replace"],
  ["a suspect slice whose rows are back is unchanged", { suspectRun: "run-1" }, { contentHash: "full" }, "unchanged"],
  ["a suspect slice with other rows is replaced", { suspectRun: "run-1" }, {}, "replace"],
])("%s", (_, storedPart, incomingPart, decision) => {
  expect(decideSlice({ ...stored, ...storedPart }, { ...incoming, ...incomingPart }, "confirm")).toBe(decision);
});

test("without the guard an empty day is taken at its word", () => {
  expect(decideSlice(stored, { ...incoming, ...empty }, "off")).toBe("replace");
});

test("without the guard an older fetch is stale all the same", () => {
  expect(decideSlice({ ...stored, fetchNo: 7 }, { ...incoming, ...empty }, "off")).toBe("stale");
});
