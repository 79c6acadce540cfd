// How an answer is made of rows: which amounts are zero, which unknown, what it lacks. same-answers.test.ts tests amounts of stored usage.

import { expect, test } from "vitest";
import {
  type Answer,
  answerOf,
  type DayWithState,
  lackingDays,
  type Unpriced,
  type UsageRow,
} from "../../src/facts/answer.ts";
import { type Question, splitsOf } from "../../src/facts/question.ts";
import { type Day, daysOf, type Window } from "../../src/usage/days.ts";

type Parts = Parameters<typeof answerOf>[0];
type Case = {
  readonly question?: Partial<Question>;
  readonly scope?: Partial<Parts["scope"]>;
  /** The states of days; final if not given. */
  readonly states?: Readonly<Record<Day, DayWithState["state"]>>;
  readonly rows?: readonly UsageRow[];
  readonly isCompared?: boolean;
  readonly projects?: Partial<Parts["lacking"]>;
  readonly currencies?: string[];
  readonly unpriced?: Unpriced;
};

const row = (part: UsageRow["part"], rank: number | null, amount: string | null, more: Partial<UsageRow> = {}) => ({
  ...{ part, rank: rank === null ? null : String(rank), group: rank === null ? null : `g${rank}` },
  ...{ usage_date: null, amount, amount_before: null, groups: null, ...more },
});
const total = (amount: string | null, amount_before: string | null = null) =>
  row("total", null, amount, { amount_before });

function answer(one: Case): Answer {
  const { question, scope, states = {}, rows = [total("5", "3")], projects, currencies = [], ...parts } = one;
  const asked: Question = {
    period: { start: "2026-03-01", end: "2026-03-02" },
    before: { start: "2026-02-27", end: "2026-02-28" },
    ...{ projects: undefined, metric: "hours", currency: undefined, grouping: "model", filter: undefined },
    ...{ group: undefined, limit: 8, sort: "amount", ...question },
  };
  const facts = {
    ...{ projectIds: undefined, filter: undefined, projects: ["production"], projectCount: 1 },
    ...{ available: { groupings: ["none" as const], filters: ["all"], currencies }, ...scope },
  };
  const withStates = (window: Window) => daysOf(window).map((day) => ({ day, state: states[day] ?? "final" }));
  const days = withStates(asked.period);
  const daysBefore = asked.before && withStates(asked.before);
  const nothing = { projectsLeftOut: [], projectsLeftOutCount: 0, projectsEnded: [], projectsEndedCount: 0 };
  return answerOf({
    ...{ question: asked, scope: facts, days, daysBefore, rows, sql: "select 1", isCompared: true },
    unpriced: { unpricedModels: 0, unpricedMetrics: [] },
    lacking: { ...lackingDays(days, daysBefore), ...nothing, ...projects },
    ...{ labels: new Map([["g1", "Anna"]]), ...parts },
  });
}

test.each([
  ["final", "0"],
  ["settling", "0"],
  ["incomplete", null],
  ["unread", null],
] as const)("on a day that is %s, a group without a row has the amount %s", (state, amount) => {
  const rows = [
    ...[row("group", 1, "5"), row("group of day", 1, "5.50", { usage_date: "2026-03-01" })],
    ...[row("group", null, "1", { groups: "3" }), row("group of day", null, "1", { usage_date: "2026-03-01" })],
  ];
  const shown = answer({ states: { "2026-03-02": state }, rows });
  expect(shown.days[1]).toEqual({ day: "2026-03-02", state });
  expect(shown.groups[0]?.byDay).toEqual(["5.5", amount]);
  expect(shown.otherByDay).toEqual(["1", amount]);
  const isRead = amount !== null;
  expect(shown.complete).toBe(isRead);
  expect(shown.lacking.incompleteDays).toEqual(state === "incomplete" ? ["2026-03-02"] : []);
  expect(shown.lacking.unreadDays).toEqual(state === "unread" ? ["2026-03-02"] : []);
});

test.each<[string, Case, amounts: Pick<NonNullable<Answer["total"]>, "amount" | "before" | "change">]>([
  ["is exact", { rows: [total("5.10", "7.2")] }, { amount: "5.1", before: "7.2", change: "-2.1" }],
  ["that is new is its amount", { rows: [total("5", null)] }, { amount: "5", before: null, change: "5" }],
  ["no longer used is negative", { rows: [total(null, "3")] }, { amount: null, before: "3", change: "-3" }],
  ["uncompared is null", { rows: [total("5", "3")], isCompared: false }, { amount: "5", before: "3", change: null }],
])("the change of a total %s", (_, parts, expected) => {
  expect(answer(parts).total).toEqual(expected);
});

const GROUPS = [total("5", "3"), row("group", 1, "5"), row("group", 2, null, { amount_before: "3" })];

const unread = (...days: readonly string[]) => Object.fromEntries(days.map((day) => [day, "unread" as const]));
const incomplete = (...days: readonly string[]) => Object.fromEntries(days.map((day) => [day, "incomplete" as const]));

test.each<[string, Case, amount: string | null, before: string | null]>([
  ["0 if all days were read", { rows: GROUPS }, "0", "0"],
  ["0 by tags too", { rows: GROUPS.slice(1), question: { grouping: "tags" } }, "0", "0"],
  ["not known if the service never sent it", { rows: [total(null), ...GROUPS.slice(1)] }, null, null],
  ["not known if a day was not read", { rows: GROUPS, states: unread("2026-03-02") }, null, "0"],
  ["not known if a day is not complete", { rows: GROUPS, states: incomplete("2026-03-02") }, null, "0"],
  ["not known before if a day was not read then", { rows: GROUPS, states: unread("2026-02-27") }, "0", null],
  ["not known before if a day is not complete then", { rows: GROUPS, states: incomplete("2026-02-28") }, "0", null],
  [
    "not known in both periods if each has a day that is not complete",
    { rows: GROUPS, states: incomplete("2026-02-28", "2026-03-02") },
    ...([null, null] as const),
  ],
  [
    "not known if a project has ended",
    { rows: GROUPS, projects: { projectsEnded: ["old"], projectsEndedCount: 1 } },
    ...([null, null] as const),
  ],
])("the amount of a group without a row is %s", (_, parts, amount, before) => {
  const [first, second] = answer(parts).groups;
  expect([first?.before, second?.amount]).toEqual([before, amount]);
});

test("only the largest eight groups have amounts by day", () => {
  const ranks = [1, 8, 9];
  const { groups } = answer({ rows: [total("9", "1"), ...ranks.map((rank) => row("group", rank, "1"))] });
  expect(groups.map(({ rank, group, label, byDay }) => [rank, group, label, byDay])).toEqual([
    [1, "g1", "Anna", ["0", "0"]],
    [8, "g8", null, ["0", "0"]],
    [9, "g9", null, undefined],
  ]);
});

test("the other groups have one amount together, unless they overlap as tags do", () => {
  const rows = [
    ...[total("9", "1"), row("group", 1, "5"), row("group", 2, "1"), row("group", null, "3", { groups: "6" })],
    ...[row("group of day", null, "3", { usage_date: "2026-03-01" }), row("group of day", 1, "5")],
    row("day", null, null, { usage_date: "2026-02-28", amount_before: "1.0" }),
  ];
  expect(answer({ rows })).toMatchObject({
    ...{ other: { groups: 4, amount: "3", before: "0", change: "3" }, otherByDay: ["3", "0"] },
    beforeByDay: [
      { day: "2026-02-27", state: "final", amount: "0" },
      { day: "2026-02-28", state: "final", amount: "1" },
    ],
  });
  expect(answer({ rows, question: { grouping: "tags" } })).toMatchObject({
    ...{ other: { groups: 4, amount: null, before: null, change: null }, otherByDay: null },
    ...{ total: null, beforeByDay: null },
  });
  expect(answer({ rows: [total("9", "1")], question: { before: undefined } })).toMatchObject({
    ...{ other: null, otherByDay: null, beforeByDay: null },
    ...{ question: { before: null }, lacking: { incompleteDaysBefore: [], unreadDaysBefore: [] } },
  });
});

const UNPRICED: Unpriced = { unpricedModels: 2, unpricedMetrics: ["hours"] };

test.each<[string, Case, boolean, Partial<Answer["lacking"]>]>([
  ["all is read", {}, true, {}],
  [
    "a project is left out",
    { projects: { projectsLeftOut: ["x"], projectsLeftOutCount: 1 } },
    false,
    { projectsLeftOut: ["x"] },
  ],
  [
    "a project has ended",
    { projects: { projectsEnded: ["x"], projectsEndedCount: 1 } },
    false,
    { projectsEnded: ["x"] },
  ],
  [
    "a project is left out and another one has ended",
    { projects: { projectsLeftOutCount: 1, projectsEndedCount: 1 } },
    ...([false, { projectsLeftOutCount: 1, projectsEndedCount: 1 }] as const),
  ],
  [
    "a project is left out and a price is missing",
    { projects: { projectsLeftOutCount: 1 }, unpriced: { unpricedModels: 1, unpricedMetrics: [] } },
    false,
    {},
  ],
  ["a model has no price", { unpriced: UNPRICED }, false, { unpricedModels: 2, unpricedMetrics: ["hours"] }],
  ["no price is configured", { question: { metric: "estimated_cost" } }, false, {}],
  [
    "prices have several currencies",
    { question: { metric: "estimated_cost" }, scope: { currency: "USD" }, currencies: ["EUR", "USD"] },
    true,
    { otherCurrencies: ["EUR"] },
  ],
])("if %s, the answer says so", (_, parts, complete, lacking) => {
  expect(answer(parts)).toMatchObject({ complete, lacking, available: { currencies: parts.currencies ?? [] } });
});

test("an answer repeats its question with ids in place of names", () => {
  const asked = { filter: "all", group: { value: "g1" } };
  const scope = { projectIds: ["a", "b"], currency: "USD" };
  const period = { from: "2026-03-01", to: "2026-03-02", before: { from: "2026-02-27", to: "2026-02-28" } };
  const rest = { metric: "hours", grouping: "model", limit: 8, sort: "amount" };
  expect(answer({ question: asked, scope }).question).toEqual({
    ...{ ...period, ...rest, project: "a b", currency: "USD", ...asked },
  });
  expect(answer({}).question).toEqual({ ...period, ...rest, project: null, currency: null, filter: null, group: null });
  expect(answer({})).toMatchObject({
    ...{ projects: ["production"], projectCount: 1, available: { groupings: ["none"], filters: ["all"] } },
    ...{ compared: true, sql: "select 1" },
  });
});

test.each([
  ["estimated_cost", ["none", "model", "project"]],
  ["billed_cost", ["none", "accessor", "deployment", "tags", "line_item", "project"]],
  ["hours", expect.not.arrayContaining(["line_item"])],
  ["hours", expect.arrayContaining(["project", "none", "feature_set"])],
] as const)("%s can be split by %j", (metric, splits) => {
  expect(splitsOf(metric)).toEqual(splits);
});
