// What the overview, the report and a notification say first, in each world that they may be of.

import { expect, test } from "vitest";
import type { Answer } from "../../src/facts/answer.ts";
import { sentences } from "../../src/show/sentence.ts";
import { makeAnswer, makeOverview, NOTHING_LACKING, PERIOD } from "../facts/sample-facts.ts";
import { makeBudgetUse } from "../health/sample-health-state.ts";

const COST = { metric: "billed_cost", currency: "USD", grouping: "none" } as const;
const MONTH = { start: "2026-03-01", end: "2026-03-09" };
const total = (amount: string, before: string, change: string) => ({ total: { amount, before, change } });

function monthOf(part: Partial<Parameters<typeof makeAnswer>[0]> = {}) {
  const answer = makeAnswer({ question: COST, ...total("165519.4", "213000", "-47480.6"), ...part });
  return { period: MONTH, total: answer, forecast: { forecast: "239012", low: "232001", high: "245999" } };
}

function splitOf(grouping: Answer["question"]["grouping"], changes: Readonly<Record<string, string>>): Answer {
  const split = makeAnswer({
    question: { ...COST, grouping },
    groups: Object.keys(changes).map((group) => ({ group })),
  });
  return { ...split, groups: split.groups.map((one) => ({ ...one, change: changes[one.group ?? ""] ?? "0" })) };
}

test("with a cost, the month is said with its forecast and its budget, then what changed and who caused it", () => {
  const cost = makeAnswer({ question: COST, ...total("150", "100", "50") });
  const splits = [splitOf("project", { "Call Centre US": "25", other: "5" }), splitOf("accessor", { "key-1": "20" })];
  const budgets = [makeBudgetUse({ amount: "58000", forecast: null, forecastPercent: "412" })];
  expect(sentences(makeOverview({ cost, monthSoFar: monthOf(), splits }), budgets, undefined)).toEqual([
    "March: $165,519 so far, heading for $239,000 ($232,000 to $246,000), 4.1 times the budget.",
    "The 28 days to Mar 9 cost $150.00, 50% more than before: Call Centre US caused half of the rise, mostly one API key, key-1.",
  ]);
});

test("the forecast is that of the budget of everything, so that a page has one", () => {
  const budgets = [makeBudgetUse({ amount: "1000", forecast: "1120.4", forecastPercent: "112.04" })];
  expect(sentences(makeOverview({ monthSoFar: monthOf() }), budgets, undefined)[0]).toContain(
    "heading for $1,120 ($1,050 to $1,190), 112% of the budget of $1,000.",
  );
});

test("without a cost it is hours, of the month or of other days", () => {
  const hours = { ...monthOf({ question: { grouping: "none" }, ...total("3116.4", "0", "0") }), forecast: null };
  expect(sentences(makeOverview({ monthSoFar: hours, splits: [] }), [], undefined)[0]).toBe(
    "March: 3,116 hours so far.",
  );
  const steady = makeAnswer({ question: { grouping: "none" }, ...total("100", "99", "1") });
  expect(sentences(makeOverview({ total: steady, splits: [] }), [], undefined)).toEqual([
    "Feb 10 – Mar 9, 2026: 100 hours.",
    "The 28 days to Mar 9 had 100 hours, about the same as before.",
  ]);
});

test("what is missing comes first, and then nothing is compared", () => {
  const lacking = { ...NOTHING_LACKING, incompleteDays: ["2026-03-08", PERIOD.end] };
  const low = makeAnswer({ question: { grouping: "none" }, lacking, compared: false });
  expect(sentences(makeOverview({ total: low }), [], undefined)).toEqual([
    "The numbers of Mar 8 – Mar 9 are too low: they are not complete.",
    "Feb 10 – Mar 9, 2026: 1,620 hours.",
  ]);
  const trouble = "The service does not answer (503): no new data since Mar 7.";
  expect(sentences(makeOverview({ total: low }), [], trouble)[0]).toBe(trouble);
});

test("where none of the days could be read, there are no numbers that could be too low", () => {
  const lacking = { ...NOTHING_LACKING, incompleteDays: [PERIOD.end] };
  const total = { ...makeAnswer({ question: { grouping: "none" }, lacking, compared: false }), total: null };
  expect(sentences(makeOverview({ total }), [], undefined)).toEqual([
    "There are no numbers of Mar 9, which could not be read.",
  ]);
});

test("after the first night the numbers begin late, and are not too low", () => {
  const total = makeAnswer({ question: { grouping: "none" }, compared: false });
  const unreadDays = total.days.slice(0, -7).map(({ day }) => day);
  const first = { ...total, lacking: { ...NOTHING_LACKING, unreadDays } };
  expect(sentences(makeOverview({ total: first }), [], undefined)[0]).toBe(
    "The numbers begin on Mar 3: the days before were not read.",
  );
});

test.each([
  [
    "the day that is not over",
    { incompleteDays: [PERIOD.end] },
    "The numbers of Mar 9 are too low: it is not complete.",
  ],
  ["the newest day", { unreadDays: [PERIOD.end] }, "The numbers end on Mar 8: the days after were not read yet."],
  ["a day between", { unreadDays: ["2026-03-04"] }, "Not in the numbers: Mar 4, which was not read."],
])("%s that was not read does not make all numbers too low", (_, part, expected) => {
  const total = makeAnswer({
    question: { grouping: "none" },
    compared: false,
    lacking: { ...NOTHING_LACKING, ...part },
  });
  expect(sentences(makeOverview({ total }), [], undefined)[0]).toBe(expected);
});

test("where nothing was ever read, nothing else is said", () => {
  const total = makeAnswer({ question: { grouping: "none" }, compared: false });
  const unread = {
    ...total,
    total: null,
    lacking: { ...NOTHING_LACKING, unreadDays: total.days.map(({ day }) => day) },
  };
  expect(sentences(makeOverview({ total: unread }), [], undefined)).toEqual(["None of these days was read."]);
});
