// The first sentences of the overview, the report and a notification.

import { expect, test } from "vitest";
import type { Answer } from "../../src/facts/answer.ts";
import { forecastText, leadSentences, reportText } from "../../src/show/sentences.ts";
import type { BudgetUse } from "../../src/usage/budgets.ts";
import { daysOf } from "../../src/usage/days.ts";
import { makeAnswer, makeOverview, NOTHING_LACKING, PERIOD } from "../facts/sample-facts.ts";
import { makeBudget } from "../health/sample-health-state.ts";

// PERIOD is 2026-02-10 to 2026-03-09. By default, makeAnswer has 1,620 hours, and makeBudget forecasts 1050 to 1190.
const DAYS = daysOf(PERIOD);
const TOO_LOW = "are too low: not all of it could be read.";
const NOT_DUE = "as the export began later or these days are not due yet.";
const COST = { metric: "billed_cost", currency: "USD", grouping: "none" } as const;
const MONTH = { start: "2026-03-01", end: "2026-03-09" };
const totalOf = (amount: string, before: string, change: string) => ({ total: { amount, before, change } });

/** March so far, with its cost and forecast. */
function monthOf(part: Partial<Parameters<typeof makeAnswer>[0]> = {}) {
  const answer = makeAnswer({ question: COST, ...totalOf("165519.4", "213000", "-47480.6"), ...part });
  return { period: MONTH, answer, forecast: { forecast: "239012", low: "232001", high: "245999" } };
}

/** A breakdown of the cost that has only the change of each group. */
function splitOf(grouping: Answer["question"]["grouping"], changes: Readonly<Record<string, string>>): Answer {
  const split = makeAnswer({
    question: { ...COST, grouping },
    groups: Object.keys(changes).map((group) => ({ group })),
  });
  return { ...split, groups: split.groups.map((one) => ({ ...one, change: changes[one.group ?? ""] ?? "0" })) };
}

const sentencesOf = (part: Parameters<typeof makeOverview>[0], budgets: readonly BudgetUse[] = [], trouble?: string) =>
  leadSentences(makeOverview(part), budgets, trouble);
/** A total that is not compared and lacks `part`. */
const lackingOf = (part: Partial<Answer["lacking"]>) =>
  makeAnswer({
    question: { grouping: "none" },
    groups: [{ group: null }],
    compared: false,
    lacking: { ...NOTHING_LACKING, ...part },
  });

test("with a cost, the sentences name the month's forecast, the budget, the change and its cause", () => {
  const cost = makeAnswer({ question: COST, ...totalOf("150", "100", "50") });
  const splits = [
    splitOf("project", { "Call Centre US": "25", other: "5" }),
    splitOf("accessor", { "key (Call Centre US)": "20" }),
  ];
  const budgets = [makeBudget({ amount: "58000", forecast: null, forecastPercent: "412" })];
  expect(sentencesOf({ cost, monthSoFar: monthOf(), splits }, budgets)).toEqual([
    "March: $165,519 so far, heading for $239,000 ($232,000 to $246,000), 4.1 times the budget.",
    "Billed cost rose by 50%, from $100.00 (Jan 13 – Feb 9) to $150.00 (Feb 10 – Mar 9, 2026).",
    "Call Centre US caused half of the rise, mostly one API key, key.",
  ]);
});

test("the month shows the budget's forecast instead of its own", () => {
  const budgets = [makeBudget({ amount: "1000", forecast: "1120.4", forecastPercent: "112.04" })];
  expect(sentencesOf({ monthSoFar: monthOf() }, budgets)[0]).toContain(
    "heading for $1,120 ($1,050 to $1,190), 112% of the budget of $1,000.",
  );
});

test("without a cost the sentences are about hours", () => {
  const hours = { ...monthOf({ question: { grouping: "none" }, ...totalOf("3116.4", "0", "0") }), forecast: null };
  expect(sentencesOf({ monthSoFar: hours, splits: [] })[0]).toBe("March: 3,116 hours so far.");
  const steady = makeAnswer({ question: { grouping: "none" }, ...totalOf("100", "99", "1") });
  expect(sentencesOf({ total: steady, splits: [] })).toEqual([
    "Hours rose by 1%, from 99 hours (Jan 13 – Feb 9) to 100 hours (Feb 10 – Mar 9, 2026).",
  ]);
});

test("the first sentence says what is missing", () => {
  const total = lackingOf({ incompleteDays: ["2026-03-08", PERIOD.end] });
  expect(sentencesOf({ total })).toEqual([
    `The numbers of Mar 8 – 9, 2026 ${TOO_LOW}`,
    "Hours in Feb 10 – Mar 9, 2026: 1,620 hours.",
  ]);
  const trouble = "No data after Mar 7: the service is failing (503).";
  expect(sentencesOf({ total }, [], trouble)[0]).toBe(trouble);
});

test("incomplete days without any number are not said to be too low", () => {
  const total = { ...lackingOf({ incompleteDays: [PERIOD.end] }), total: null, groups: [] };
  expect(sentencesOf({ total })).toEqual(["There are no numbers for Mar 9, 2026, which could not be read."]);
  const [one] = makeAnswer({ groups: [{ group: "a" }] }).groups;
  const groups = one ? [{ ...one, byDay: DAYS.map((day) => (day === PERIOD.end ? null : "5")) }] : [];
  expect(sentencesOf({ total: { ...total, groups } })[0]).toMatch(/^There are no numbers for Mar 9/);
});

test.each<[string, Partial<Answer["lacking"]>, said: string]>([
  ["the first days", { unreadDays: DAYS.slice(0, -7) }, "The numbers begin on Mar 3: the days before were not read."],
  ["the newest days", { unreadDays: DAYS.slice(-2) }, "The numbers end on Mar 7: the days after were not read yet."],
  ["every day as not due", { unreadDays: DAYS }, `Not read: Feb 10 – Mar 9, 2026, ${NOT_DUE}`],
  ["the last day", { incompleteDays: [PERIOD.end] }, `The numbers of Mar 9, 2026 ${TOO_LOW}`],
  ["every day as too low", { incompleteDays: DAYS }, `The numbers of Feb 10 – Mar 9, 2026 ${TOO_LOW}`],
  ["a day between", { unreadDays: ["2026-03-04"] }, `Not read: Mar 4, 2026, ${NOT_DUE}`],
  ["days apart", { unreadDays: [PERIOD.start, "2026-02-12"] }, `Not read: Feb 10, 2026; Feb 12, 2026, ${NOT_DUE}`],
  ["the first day", { incompleteDays: [PERIOD.start] }, `The numbers of Feb 10, 2026 ${TOO_LOW}`],
])("what is lacking is said: %s", (_, lacking, said) => {
  expect(sentencesOf({ total: lackingOf(lacking) })[0]).toBe(said);
});

test("days that could not be read come before those that were not due", () => {
  const total = lackingOf({ unreadDays: ["2026-03-04"], incompleteDays: ["2026-03-05"] });
  const said = [`The numbers of Mar 5, 2026 ${TOO_LOW}`, `Not read: Mar 4, 2026, ${NOT_DUE}`];
  expect(sentencesOf({ total }).slice(0, 2)).toEqual(said);
});

const costOf = (amount: string, before: string, change: string) =>
  makeAnswer({ question: COST, ...totalOf(amount, before, change) });
const saidOfChange = (cost: Answer, splits: readonly Answer[] = []) =>
  sentencesOf({ cost, splits: [...splits] }).at(-1);

test.each([
  ["30", "more than all"],
  ["25", "all"],
  ["24", "nearly all"],
  ["23.7", "most"],
  ["13.7", "half"],
  ["11.2", "a third"],
  ["7.4", "a quarter"],
])("a project with %s of a rise of 25 caused %s of it", (change, share) => {
  expect(saidOfChange(costOf("125", "100", "25"), [splitOf("project", { other: "1", US: change })])).toBe(
    `US caused ${share} of the rise.`,
  );
});

const DOUBLED = costOf("200", "100", "100");
const BY_MODEL = splitOf("model", { a: "90" });
const BY_PROJECT_AND_KEY = [splitOf("project", { US: "80" }), splitOf("accessor", { k: "40" })];
const BILLED = /^Billed cost rose/;

test.each<[string, Answer, readonly Answer[], said: RegExp]>([
  ["a fall", costOf("60", "100", "-40"), [splitOf("model", { a: "-20", b: "5" })], /^a caused half of the fall\.$/],
  ["groups of less than a fifth", DOUBLED, [splitOf("model", { a: "19.9" })], BILLED],
  ["tags, which overlap", DOUBLED, [splitOf("tags", { '["a"]': "90" })], BILLED],
  ["a split that is not compared", DOUBLED, [{ ...BY_MODEL, compared: false }], BILLED],
  ["a split of another metric", DOUBLED, [makeAnswer({ groups: [{ group: "a" }] })], BILLED],
  ["a key with half of its project", DOUBLED, BY_PROJECT_AND_KEY, /^US caused most of the rise\.$/],
  ["a split whose groups fell", DOUBLED, [splitOf("project", { US: "-5" }), BY_MODEL], /^a caused most of the rise\.$/],
  ["keys", DOUBLED, [splitOf("accessor", { k: "100" })], /^k caused all of the rise\.$/],
  ["what was not used before", costOf("90", "0", "90"), [BY_MODEL], /^a caused all of the rise\.$/],
  ["3 %", costOf("103", "100", "3"), [BY_MODEL], BILLED],
  ["nothing", costOf("0", "0", "0"), [BY_MODEL], /^Billed cost did not change/],
])("the sentence names the cause of a change only if it is clear: %s", (_, cost, splits, said) => {
  expect(saidOfChange(cost, splits)).toMatch(said);
});

test("a cost that is not compared is not said to have changed", () => {
  expect(sentencesOf({ cost: makeAnswer({ question: COST, compared: false }) })).toHaveLength(1);
});

test("the sentences name a single day and an estimate", () => {
  const period = { start: PERIOD.end, end: PERIOD.end };
  const cost = makeAnswer({ question: { ...COST, metric: "estimated_cost" }, ...totalOf("110", "100", "10"), period });
  expect(sentencesOf({ cost, period, splits: [] })).toEqual([
    "Estimated cost rose by 10%, from $100.00 (Jan 13 – Feb 9) to $110.00 (Mar 9, 2026).",
  ]);
  const [first] = sentencesOf({ cost, monthSoFar: { ...monthOf(), answer: cost } });
  expect(first).toMatch(/^March: an estimated \$110.00 so far/);
});

test.each([
  [["232001", "245999"], "$239,000 ($232,000 to $246,000)"],
  [["238999", "239001"], "$239,000"],
])("a forecast of 239012 within %j is %s", ([low = "", high = ""], expected) => {
  expect(forecastText({ forecast: "239012", low, high }, COST)).toBe(expected);
});

const BUDGET = { amount: "58000", forecast: null, forecastPercent: "50" };

test.each<[string, Parameters<typeof makeBudget>[0], said: RegExp]>([
  ["of everything is said", {}, /, 50% of the budget of \$58,000\.$/],
  ["without a forecast has its share so far", { forecastPercent: null, percent: "12.9" }, /, 12% of the budget/],
  ["that is used up once is a share", { forecastPercent: "199.9" }, /, 199% of the budget of/],
  ["that is used up twice is given in times", { forecastPercent: "200" }, /, 2 times the budget\.$/],
  ["that is used up very often is rounded", { forecastPercent: "123456" }, /, 1,200 times the budget\.$/],
  ["with a forecast has it", { forecast: "300", forecastLow: null, forecastHigh: null }, /heading for \$300, 50%/],
  ["of a tag is not said", { scope: "tag" }, /\$246,000\)\.$/],
  ["of a day is not said", { period: "day" }, /\$246,000\)\.$/],
  ["that is over is not said", { isOver: true }, /\$246,000\)\.$/],
  ["of other projects is not said", { projectIds: ["a", "b"] }, /\$246,000\)\.$/],
  ["in another currency is not said", { currency: "EUR" }, /\$246,000\)\.$/],
])("a budget %s", (_, part, said) => {
  expect(sentencesOf({ monthSoFar: monthOf() }, [makeBudget({ ...BUDGET, ...part })])[0]).toMatch(said);
});

test.each([
  ["hours", /the budget of 58,000 hours/],
  ["requests", /so far\.$/],
] as const)("a budget of %s beside hours is said only if it is of hours", (metric, said) => {
  const hours = { ...monthOf({ question: { grouping: "none" } }), forecast: null };
  const budget = makeBudget({ ...BUDGET, metric, currency: null });
  expect(sentencesOf({ monthSoFar: hours }, [budget])[0]).toMatch(said);
});

const unknown = { total: { amount: null, before: null, change: null } };

test("a total without an amount is left out", () => {
  const lacking = { ...NOTHING_LACKING, unreadDays: ["2026-03-04"] };
  for (const part of [unknown, { total: null }]) {
    const total = makeAnswer({ question: { grouping: "none" }, compared: false, lacking, ...part });
    const said = [`Not read: Mar 4, 2026, ${NOT_DUE}`];
    expect(sentencesOf({ total })).toEqual(said);
    expect(sentencesOf({ total, monthSoFar: { ...monthOf(), answer: total } })).toEqual(said);
    const cost = makeAnswer({ question: COST, ...part });
    expect(sentencesOf({ cost })).toEqual([]);
    expect(reportText(makeOverview({ cost, figures: [] }), [])).toMatch(/^Nothing is known/);
  }
});

test("a message ends with each amount and its change", () => {
  const cost = costOf("150", "100", "50");
  const compared = makeOverview({ cost, splits: [] });
  expect(reportText(compared, [])).toBe(
    "Billed cost rose by 50%, from $100.00 (Jan 13 – Feb 9) to $150.00 (Feb 10 – Mar 9, 2026). " +
      "Feb 10 – Mar 9, 2026: $150.00 (+50%); 1,620 hours (+7.7%); 9.2M TTS characters (new); 373.4K requests (-4.3%).",
  );
  const uncompared = { compared: false };
  const alone = { ...compared, cost: { ...cost, ...uncompared }, total: { ...compared.total, ...uncompared } };
  expect(reportText(alone, [])).toMatch(/: \$150\.00; 1,620 hours; 9\.2M TTS characters; 373\.4K requests\.$/);
  expect(reportText(makeOverview({ figures: [] }), [])).toBe("Nothing is known of Feb 10 – Mar 9, 2026.");
});
