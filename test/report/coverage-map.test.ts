import { expect, test } from "vitest";
import { coverageMap } from "../../src/report/coverage-section.ts";
import type { SliceStatus } from "../../src/usage/slice.ts";

const days = ["2026-11-18", "2026-11-19", "2026-11-20"];
const row = (label: string, ...statuses: (SliceStatus | undefined)[]) => ({ label, statuses });
const rows = [row("a", "complete", "failed", "missing"), row("b", undefined, "suspect", "complete")];
const wideMap = (wideRows: typeof rows) => coverageMap(days, wideRows, rows).wide;

test("each status marks the cells (day, row) that have it; a day that was not due has no mark", () => {
  expect([wideMap(rows).option.series].flat().map((one) => [one?.name, one?.data])).toEqual([
    [
      "complete",
      [
        [0, 0],
        [2, 1],
      ],
    ],
    ["suspect", [[1, 1]]],
    ["failed", [[1, 0]]],
    ["missing", [[2, 0]]],
  ]);
});

test("the map grows by 22 px a row, and its left margin is as wide as the longest label", () => {
  const many = Array.from({ length: 60 }, () => row("a series with a long name", "complete"));
  const [few, more] = [wideMap(rows), wideMap(many)];
  expect(more.height - few.height).toBe(58 * 22);
  // 6.6 px for each of a label's 25 characters.
  expect(more.option.grid).toMatchObject({ left: expect.closeTo(25 * 6.6 + 14) });
});
