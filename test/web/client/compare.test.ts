import { expect, test } from "vitest";
import { compareCells, compareDecimals, decimalOf } from "../../../src/web/client/compare.ts";

test.each([
  ["1,234.50", "1234.50"],
  [" 12 ", "12"],
  ["+90", "90"],
  ["\u22125.1", "-5.1"],
  ["1,2", undefined],
  ["12 of 13", undefined],
  ["", undefined],
  ["0x10", undefined],
  ["1e3", undefined],
])("the cell %j has the decimal %j", (text, decimal) => {
  expect(decimalOf(text)).toBe(decimal);
});

test.each([
  ["9007199254740992", "9007199254740993"],
  ["0.10000000000000000001", "0.10000000000000000002"],
  ["-2", "-1.5"],
  ["-0.5", "0"],
  ["9.9", "10"],
  ["0.09", "0.1"],
])("%s is less than %s, by their digits", (less, more) => {
  expect([compareDecimals(less, more), compareDecimals(more, less), compareDecimals(more, more)]).toEqual([-1, 1, 0]);
});

test("equal amounts are equal however many zeros they have", () => {
  expect(compareDecimals("1.50", "1.5")).toBe(0);
  expect(compareDecimals("-0", "0.00")).toBe(0);
});

test("decimals come before texts, and a text's numbers count as numbers", () => {
  expect(["nova-10", "none", "1,000", "nova-9", "25"].sort(compareCells)).toEqual([
    "25",
    "1,000",
    "none",
    "nova-9",
    "nova-10",
  ]);
});
