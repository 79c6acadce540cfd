import { expect, test } from "vitest";
import { adviseWindow, type CurvePoint } from "../../src/usage/window-advice.ts";

/** A curve with one share for each day after the day. */
function curve(shares: readonly number[], days = 30): readonly CurvePoint[] {
  return shares.map((knownShare, i) => ({ daysAfter: i + 1, knownShare, days }));
}

type Case = readonly [name: string, windowDays: number, curves: readonly (readonly CurvePoint[])[], advice: unknown];

const longer = (days: number, knownAfterDays: number) => ({ advice: "longer", days, knownAfterDays, restsOnDays: 30 });
const shorter = (days: number, knownAfterDays: number) => ({ ...longer(days, knownAfterDays), advice: "shorter" });

const CASES: readonly Case[] = [
  ["nothing is known", 7, [], undefined],
  ["a curve has no point", 7, [[]], undefined],
  ["only the day itself is known", 7, [[{ daysAfter: 0, knownShare: 0.4, days: 30 }]], undefined],
  ["too few days are known", 2, [curve([0.9, 1], 6)], undefined],
  ["just enough days are known", 2, [curve([0.9, 1], 7)], { ...longer(4, 2), restsOnDays: 7 }],
  ["the last reading changed nothing", 3, [curve([0.9, 1, 1])], undefined],
  ["the last reading changed too little to matter", 2, [curve([0.999, 1])], undefined],
  ["the last reading changed just enough", 2, [curve([0.998_999, 1])], longer(4, 2)],
  ["each day is read only once", 1, [curve([1])], longer(2, 1)],
  ["later readings by hand found changes", 3, [curve([0.5, 0.9, 0.99, 0.99, 0.99, 1])], longer(7, 6)],
  ["a number was right, wrong and right again", 5, [curve([1, 1, 1, 0.9, 1])], longer(10, 5)],
  ["one of several series is late", 4, [curve([1, 1, 1, 1]), curve([0.9, 0.9, 0.9, 1])], longer(8, 4)],
  ["the default window is longer than needed", 7, [curve([1, 1, 1, 1, 1, 1, 1])], undefined],
  [
    "the window is much longer than needed, but not three times",
    11,
    [curve([0.9, 0.9, 1, ...Array(8).fill(1)])],
    undefined,
  ],
  [
    "the window is three times as long as needed, but not a week longer",
    8,
    [curve([1, 1, 1, 1, 1, 1, 1, 1])],
    undefined,
  ],
  [
    "the window is three times as long as needed, and a week longer",
    12,
    [curve([0.9, 0.9, 1, ...Array(9).fill(1)])],
    shorter(4, 3),
  ],
  ["the slowest of several series needs less", 30, [curve([1]), curve([0.9, 1])], shorter(3, 2)],
];

test.each(CASES)("if %s: the advice on a window of %i days", (_name, windowDays, curves, advice) => {
  expect(adviseWindow(windowDays, curves)).toEqual(advice);
});
