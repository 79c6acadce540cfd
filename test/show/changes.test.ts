// The sentences about a change between two periods, and about a budget.

import { expect, test } from "vitest";
import type { Answer } from "../../src/facts/answer.ts";
import type { ChangePart, ChangeSplit } from "../../src/facts/changes.ts";
import { budgetTitle, spentText } from "../../src/show/format.ts";
import {
  changeSentences,
  lackingSentences,
  namesText,
  reasonSentences,
  whyNotCompared,
} from "../../src/show/sentences.ts";
import { makeAnswer, NOTHING_LACKING } from "../facts/sample-facts.ts";
import { makeBudget } from "../health/sample-health-state.ts";

/** The periods of makeAnswer. A sentence that names both has the year only once, in the later one. */
const PERIODS = { now: "Feb 10 – Mar 9, 2026", before: "Jan 13 – Feb 9, 2026" };
const BEFORE = "Jan 13 – Feb 9";

const headline = (parts: Parameters<typeof makeAnswer>[0]) =>
  changeSentences({ answer: makeAnswer(parts), splits: [] })[0];

test.each([
  ["110", "100", "10", `Hours rose by 10%, from 100 hours (${BEFORE}) to 110 hours (${PERIODS.now}).`],
  ["50", "100", "-50", `Hours fell by 50%, from 100 hours (${BEFORE}) to 50 hours (${PERIODS.now}).`],
  ["5", "0", "5", `Hours rose, from 0 hours (${BEFORE}) to 5 hours (${PERIODS.now}).`],
  ["5", "5.0", "0.0", `Hours did not change: 5 hours in ${PERIODS.now} as in ${BEFORE}.`],
])("the headline of %s after %s says both amounts and their change", (amount, before, change, text) => {
  expect(headline({ total: { amount, before, change } })).toBe(text);
});

test.each<[string, Partial<Answer["lacking"]>, readonly RegExp[]]>([
  [
    "days that were not read",
    { unreadDays: ["2026-02-11", "2026-02-12"] },
    [/2 days of this period were not read/, /Feb 11/],
  ],
  [
    "a day that is not complete",
    { incompleteDays: ["2026-02-14"] },
    [/1 day of this period is not complete/, /Feb 14/],
  ],
  ["days of the period before", { unreadDaysBefore: ["2026-01-20"] }, [/1 day of the period before was/, /Jan 20/]],
  ["projects that ended", { projectsEnded: ["old"], projectsEndedCount: 3 }, [/old and 2 more/]],
])("if a change is not known, the sentence has the amount of the period beside %s", (_, part, texts) => {
  const lacking = { ...NOTHING_LACKING, ...part };
  const text = headline({ total: { amount: "7", before: "8", change: null }, lacking });
  for (const one of [/7 hours/, /^(?!.*8 hours)/, ...texts]) expect(text).toMatch(one);
});

test("lackingSentences names only what is lacking", () => {
  expect(lackingSentences(NOTHING_LACKING)).toEqual([]);
  const all = { unpricedModels: 2, unpricedMetrics: ["tokens_in" as const], otherCurrencies: ["EUR", "CHF"] };
  const projects = { projectsLeftOut: ["a"], projectsLeftOutCount: 2, projectsEnded: ["b"], projectsEndedCount: 1 };
  expect(lackingSentences({ ...NOTHING_LACKING, ...all, ...projects })).toEqual([
    "Not in the cost, as it has no price: tokens in (2 models).",
    "Not in these amounts: usage that is priced in EUR, CHF.",
    ...[expect.stringContaining("a and 1 more"), expect.stringContaining("b.")],
  ]);
});

const part = (group: string | null, change: string, more: Partial<ChangePart> = {}): ChangePart => ({
  ...{ part: "group", group, label: null, status: "changed", groups: 1, before: "0", after: change, change },
  ...more,
});

test("only the three largest groups that changed are named", () => {
  const parts = [
    part("a", "9", { label: "Anna", status: "new" }),
    part("0", "0.0"),
    part(null, "-7", { part: "others", groups: 3 }),
    part(null, "-5", { status: "vanished" }),
    part("b", "2"),
    part("c", "1"),
  ];
  const splits: ChangeSplit[] = [
    { grouping: "model", lacking: NOTHING_LACKING, parts },
    { grouping: "tags", lacking: { ...NOTHING_LACKING, unreadDays: ["2026-02-11"] }, parts: [] },
    { grouping: "tags", lacking: NOTHING_LACKING, parts: [part('["batch","night"]', "3"), part("[]", "2")] },
  ];
  const [, ...reasons] = changeSentences({ answer: makeAnswer(), splits });
  expect(reasons).toEqual([
    "By model: Anna +9 hours (new), (no value) -5 hours (vanished), b +2 hours.",
    "By tags: batch, night +3 hours; no tags +2 hours.",
    "It can't be split by tags: 1 day was not read by tags.",
  ]);
});

test("reasons tell API keys with the same comment apart", () => {
  const parts = ["key-1", "key-2"].map((key, i) => part(key, `${2 * i}`, { label: "batch" }));
  const splits = [{ grouping: "accessor" as const, lacking: NOTHING_LACKING, parts }];
  expect(reasonSentences({ answer: makeAnswer(), splits })).toEqual(["By API key: batch (key-2) +2 hours."]);
});

test.each<[string, Partial<Answer["lacking"]>, said: string]>([
  [
    "were not read in the two periods",
    { unreadDays: ["2026-02-11"], unreadDaysBefore: ["2026-01-20"] },
    "2 days were not read",
  ],
  [
    "are not complete",
    { incompleteDays: ["2026-02-11"], incompleteDaysBefore: ["2026-01-20"] },
    "2 days are not complete",
  ],
  [
    "were not read, or are not complete",
    { unreadDaysBefore: ["2026-01-20"], incompleteDays: ["2026-02-11"] },
    "1 day was not read and 1 day is not complete",
  ],
])("if a change can't be split, the sentence counts the days that %s", (_, part, said) => {
  const splits = [{ grouping: "model" as const, lacking: { ...NOTHING_LACKING, ...part }, parts: [] }];
  expect(reasonSentences({ answer: makeAnswer(), splits })).toEqual([`It can't be split by model: ${said} by model.`]);
});

test.each<[string, Parameters<typeof makeAnswer>[0], said: string]>([
  [
    "of the period before",
    { total: { amount: "7", before: null, change: "7" } },
    `Hours in ${PERIODS.now}: 7 hours. Nothing is known of ${PERIODS.before}.`,
  ],
  ["of this period", { total: { amount: null, before: "7", change: "-7" } }, `Nothing is known of ${PERIODS.now}.`],
  ["at all", { total: null }, `Nothing is known of ${PERIODS.now}.`],
  [
    "of a period that is compared with none",
    { total: null, question: { before: null } },
    `Nothing is known of ${PERIODS.now}.`,
  ],
])("if nothing is known %s, no change is said", (_, parts, said) => {
  expect(headline(parts)).toBe(said);
});

test("whyNotCompared says everything that the two periods lack", () => {
  const lacking = {
    ...NOTHING_LACKING,
    unreadDays: ["2026-02-11"],
    incompleteDays: ["2026-02-12"],
    unreadDaysBefore: ["2026-01-20"],
  };
  const all = { ...lacking, projectsEnded: ["old"], projectsEndedCount: 1 };
  expect(whyNotCompared(makeAnswer({ lacking: all }))).toBe(
    `Not compared with ${PERIODS.before}: 1 day of this period was not read (Feb 11, 2026) and 1 day of this period is not complete (Feb 12, 2026); 1 day of the period before was not read (Jan 20, 2026); no longer read: old.`,
  );
  expect(whyNotCompared(makeAnswer())).toBe(undefined);
  expect(whyNotCompared(makeAnswer({ lacking: all, question: { before: null } }))).toBe(undefined);
});

test("after a cost, sentences name its projects and the days that may still change", () => {
  const answer = makeAnswer({
    question: { metric: "billed_cost", currency: "USD" },
    days: [
      { day: "2026-03-08", state: "settling" },
      { day: "2026-03-09", state: "final" },
    ],
    projects: ["a", "b", "c", "d", "e", "f"],
    projectCount: 40,
  });
  const [, ...said] = changeSentences({ answer, splits: [] });
  expect(said).toHaveLength(2);
  expect(said[0]).toContain("a, b, c, d, e and 35 more");
  expect(said[1]).toMatch(/1 day is .*Mar 8/);
});

test("names are on one line, short and never empty", () => {
  expect(namesText(["a\nb", "", "x".repeat(60)], 4)).toMatch(/^a b, \(blank\), x{26}…x{13} and 1 more$/);
});

// Where a case sets nothing else, makeBudget has used $834.50 of $1,000, and is heading for $1,120.
test.each([
  ["with a forecast", {}, /of \$1,000 .*heading for/],
  ["of which no day was read", { used: null }, /no day .*\$1,000/],
  ["nearly reached, and so not at 100%,", { percent: "99.99", forecast: null }, /\(99%\)$/],
  ["barely exceeded, and so over 100%,", { percent: "100.2", forecast: null }, /\(101%\)$/],
  ["with days that are not read", { daysMissing: 2 }, /; 2 days not read and not counted$/],
  ["with a day that is not final", { daysNotFinal: 1 }, /; 1 day may still change$/],
  ["of a tag never seen", { isNeverSeen: true, scope: "tag", scopeValue: "x" } as const, /no usage of tag "x"/],
  ["with usage without a price", { hasUnpriced: true }, /without a price/],
])("a budget %s says how much of it is used", (_, use, text) => {
  const whole = { daysMissing: 0, daysNotFinal: 0, hasUnpriced: false };
  expect(spentText(makeBudget({ ...whole, ...use }))).toMatch(text);
});

test("a budget's title has its period and the source of its cost", () => {
  const use = { name: "b", start: "2026-11-01" };
  expect(budgetTitle(makeBudget({ ...use, period: "month", costSource: "billed" }))).toBe("b (2026-11, billed)");
  expect(budgetTitle(makeBudget({ ...use, period: "day", costSource: null }))).toBe("b (2026-11-01)");
});
