import { expect, test } from "vitest";
import { compareCells } from "../../../src/web/client/compare.ts";

test("cells are ordered by every digit of their decimals, which come before texts, and a text's numbers count as numbers", () => {
  const ordered = [
    ...["\u22125.1", "-2", "-1.5", "0", "0.09", "+0.1", "0.10000000000000000001", "9.9", "1,234.50", "1234.6"],
    ...["9007199254740992", "9007199254740993", "0x10", "1,2", "1e3", "12 of 13", "none", "nova-9", "nova-10"],
  ];
  expect(ordered.toReversed().sort(compareCells)).toEqual(ordered);
  expect(compareCells("-0", "0.00")).toBe(0);
});
