import { expect, test } from "vitest";
import { dayTotals, type Effect, effectOf } from "../../src/jobs/filter-check.ts";
import { normalise } from "../../src/usage/normalise.ts";
import { billed } from "../db/stored-billing.ts";
import { RUN_DAY, sampleAnswer, sampleRequest, sampleRow } from "../usage/sample-request.ts";

const [FIRST, SECOND] = ["2026-03-16", "2026-03-17"];

/** The totals of two days; each number is the requests of one group. */
function totals(first: readonly number[], second: readonly number[]) {
  const rows = (day: string, requests: readonly number[]) =>
    requests.map((count, i) => sampleRow(day, { accessor: `a${i}` }, { requests: count, hours: count / 10 }));
  const answer = sampleAnswer([...rows(FIRST, first), ...rows(SECOND, second)]);
  return dayTotals(normalise(sampleRequest("accessor"), answer, RUN_DAY));
}

test.each<[string, Effect, readonly number[], readonly number[], readonly number[], readonly number[]]>([
  ["less on one day is narrower", "narrower", [7], [5], [3], [5]],
  ["nothing on one day, and something on another, is narrower", "narrower", [7], [5], [7], []],
  ["the same numbers are the same", "same", [7], [5], [7], [5]],
  ["the same numbers in other groups are the same", "same", [7], [6], [1, 2, 4], [3, 3]],
  ["more than the total, which was read earlier, is the same", "same", [7], [5], [7], [6]],
  ["nothing on days with usage is empty", "empty", [7], [5], [], []],
  ["rows of zeros are empty", "empty", [7], [5], [0], [0]],
  ["without usage nothing is proven", "no usage", [], [], [], []],
  ["a day without usage proves nothing about another day", "same", [], [5], [], [5]],
])("%s", (_, effect, total1, total2, own1, own2) => {
  expect(effectOf(totals(total1, total2), totals(own1, own2))).toBe(effect);
});

/** The totals of amounts of money on one day, one for each line item. */
function billedTotals(dollars: readonly string[]) {
  return dayTotals([
    billed(
      FIRST,
      "line_item",
      dollars.map((amount, i) => [amount, { line_item: `item ${i}` }]),
    ),
  ]);
}

test.each<[string, Effect, readonly string[], readonly string[]]>([
  ["a credit is narrower than all charges", "narrower", ["7"], ["-3"]],
  ["a credit that is larger than the charges is narrower", "narrower", ["7"], ["-30"]],
  ["a part of the credits is narrower", "narrower", ["-7"], ["-3"]],
  ["charges are narrower where credits are larger", "narrower", ["-7"], ["3"]],
  ["the same credits are the same", "same", ["-7"], ["-4", "-3"]],
  ["a day is not empty whose charges and credits cancel each other", "narrower", ["7"], ["3", "-3"]],
  ["amounts of zero are empty", "empty", ["-7"], ["0"]],
])("%s", (_, effect, total, own) => {
  expect(effectOf(billedTotals(total), billedTotals(own))).toBe(effect);
});
