import { expect, test } from "vitest";
import { progressLine } from "../../src/cli/progress.ts";
import { NOTHING_DONE } from "../../src/usage/export.ts";

const COUNTS = { ...NOTHING_DONE, requests: 3, planned: 12, complete: 4, suspect: 1 };

function written(terminal: boolean, counts = COUNTS): string {
  const pieces: string[] = [];
  const progress = progressLine("nightly", terminal, (text) => pieces.push(text));
  progress.show(counts);
  progress.clear();
  return pieces.join("");
}

test("on a terminal one line is written over and over, and taken away at the end", () => {
  expect(written(true)).toBe("\r\x1b[Knightly: 5 of 12 slices\r\x1b[K");
});

test("failures are shown as soon as there are any", () => {
  expect(written(true, { ...COUNTS, failed: 2 })).toContain("7 of 12 slices, 2 failed");
});

test("nothing is written where nobody looks", () => {
  expect(written(false)).toBe("");
});
