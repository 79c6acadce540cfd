// Why usage and cost changed, and the overview, read from stored usage. same-answers.test.ts compares them with pages, API, CSV and SQL.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { queryAtOneMoment } from "../../src/db/connection/transaction.ts";
import { storeBudgets } from "../../src/db/prices-and-budgets.ts";
import { type Change, changes, costChanges } from "../../src/facts/changes.ts";
import { overview, readReportData } from "../../src/facts/overview.ts";
import { changeSentences } from "../../src/show/sentences.ts";
import { comparedPeriod, daysOf } from "../../src/usage/days.ts";
import { forgetAll, storeSeries } from "../db/reported-usage.ts";
import { storeBills, storeHourPrices } from "../db/stored-charges.ts";
import { daysBack, newProject } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const period = { start: back(1), end: back(1) };
const question = { period, before: { start: back(8), end: back(8) }, projects: undefined, limit: 2 };

beforeEach(() => forgetAll(db));

/** By group; the group of a total is "". */
type Hours = Readonly<Record<string, string>>;

const usageOf = (before: Hours | undefined, now: Hours) => {
  const rowsOf = (ofDay: Hours) => Object.entries(ofDay).map(([value, hours]) => [value, { hours }] as const);
  return { ...(before && { [back(8)]: rowsOf(before) }), [back(1)]: rowsOf(now) };
};

const overviewOf = (projects: readonly string[] | undefined) =>
  queryAtOneMoment(db, (run) => overview(run, { period, before: undefined, projects }, back(0)));

const partsOf = ({ splits }: Change) =>
  splits.map(({ grouping, parts }) => [
    grouping,
    ...parts.map(({ part, group, change }) => `${part === "group" ? group : part} ${change}`),
  ]);

test("a split has the groups that changed the most, all others together, and the change that no group explains", async () => {
  const [one, other] = [newProject(), newProject()];
  const before = { a: "1", b: "10", c: "5", d: "0.5" };
  const now = { a: "4", b: "3", c: "5", e: "0.25" };
  await storeSeries(db, [
    { project: one, grouping: "none", usage: usageOf({ "": "16.5" }, { "": "12.25" }) },
    { project: one, grouping: "model", usage: usageOf(before, now) },
    { project: other, grouping: "none", usage: usageOf({ "": "1" }, { "": "3" }) },
  ]);
  const change = await queryAtOneMoment(db, (run) =>
    changes(run, { ...question, metric: "hours", groupings: ["model", "project"] }),
  );
  expect(change.answer.total).toEqual({ before: "17.5", amount: "15.25", change: "-2.25" });
  expect(partsOf(change)).toEqual([
    ["model", "b -7", "a 3", "others -0.25", "not attributed 2"], // The other project has no usage by model.
    ["project", `${one.id} -4.25`, `${other.id} 2`],
  ]);
  expect(change.splits[1]?.parts[0]?.label).toBe(one.name);
});

test("a day on which a group has no amount is incomplete, not unread", async () => {
  const charges = [1, 8].map((day) => ({ day: back(day), accessor: "key-1", dollars: `${day}` }));
  await storeBills(db, newProject(), ["none", "accessor"], { start: back(8), end: back(1) }, charges);
  await sql`
    update usage_export.slice_row r set dollars = null from usage_export.series s
    where s.series_id = r.series_id and s."grouping" = 'accessor' and r.usage_date = ${back(8)}
  `.execute(db);
  const change = await queryAtOneMoment(db, (run) => changes(run, { ...question, metric: "billed_cost" }));
  expect(change).toMatchObject({
    answer: { total: { change: "-7" } },
    splits: [{ grouping: "accessor", lacking: { unreadDaysBefore: [], incompleteDaysBefore: [back(8)] }, parts: [] }],
  });
  expect(changeSentences(change)).toContain("It can't be split by API key: 1 day is not complete by API key.");
});

test("days that were not read leave a total without a change and a split without parts", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "none", usage: usageOf({ "": "1" }, { "": "2" }) },
    { project, grouping: "model", usage: usageOf(undefined, { a: "2" }) },
  ]);
  const read = (days: typeof question) => queryAtOneMoment(db, (run) => changes(run, { ...days, metric: "hours" }));
  expect(await read(question)).toMatchObject({
    answer: { total: { change: "1" } },
    splits: [{ grouping: "model", lacking: { unreadDaysBefore: [back(8)] }, parts: [] }],
  });
  const twoDays = { start: back(2), end: back(1) };
  const before = comparedPeriod(twoDays);
  expect(await read({ ...question, period: twoDays, before })).toMatchObject({
    answer: {
      total: { amount: "2", change: null },
      lacking: { unreadDays: [back(2)], unreadDaysBefore: [back(9)] },
    },
    splits: [],
  });
});

test("a project's cost is compared by bills if both periods are billed, else by the estimate in each currency", async () => {
  const [billed, other] = [newProject(), newProject()];
  const usage = usageOf({ a: "1", b: "1" }, { a: "3", b: "2" });
  await storeHourPrices(db, ["a", "USD", "2"], ["b", "EUR", "2"]);
  const series = [billed, other].map((project) => ({ project, grouping: "model" as const, usage }));
  await storeSeries(db, series);
  const costs = async () =>
    (await queryAtOneMoment(db, (run) => costChanges(run, question))).map(({ answer: { question: asked, total } }) => [
      asked.metric,
      asked.currency,
      total?.change ?? null,
    ]);
  const estimates = [
    ["estimated_cost", "EUR", "4"],
    ["estimated_cost", "USD", "8"],
  ];
  expect(await costs()).toEqual(estimates);

  const charges = [{ day: back(1), line_item: "x", dollars: "9" }];
  await storeBills(db, billed, ["line_item"], period, charges);
  expect(await costs()).toEqual([["billed_cost", "USD", null], ...estimates]);
  await storeBills(db, billed, ["line_item"], { start: back(8), end: back(1) }, charges);
  expect(await costs()).toEqual([
    ["billed_cost", "USD", "9"],
    ["estimated_cost", "EUR", "2"],
    ["estimated_cost", "USD", "4"],
  ]);
  // The overview has one cost: the billed one only if every project on it is billed.
  const metricOf = async (projects?: readonly string[]) => (await overviewOf(projects)).cost?.question.metric;
  for (const project of [billed, other]) await storeSeries(db, [{ project, grouping: "none", usage }]);
  await storeBills(db, billed, ["none"], period, [{ day: back(1), dollars: "9" }]);
  expect(await metricOf()).toBe("estimated_cost");
  expect(await metricOf([billed.id])).toBe("billed_cost");
});

test("the overview forecasts the month of all projects together", async () => {
  const due = { start: back(70), end: back(1) }; // the days that a forecast reads
  const usage = Object.fromEntries(daysOf(due).map((day) => [day, [["", { hours: "2" }] as const]]));
  const part = { grouping: "none", usage, due, windowDays: 1 } as const;
  await storeSeries(
    db,
    [newProject(), newProject()].map((project) => ({ ...part, project })),
  );
  const asked = { period: { start: back(1), end: back(0) }, before: undefined, projects: undefined };
  const { monthSoFar } = await queryAtOneMoment(db, (run) => overview(run, asked, back(0)));
  const [year, month] = back(0).split("-").map(Number);
  const daysOfMonth = new Date(Date.UTC(year ?? 0, month ?? 0, 0)).getUTCDate();
  expect(Number(monthSoFar?.forecast?.forecast)).toBeCloseTo(4 * daysOfMonth);
  const first = `${back(1).slice(0, 8)}01`;
  const onFirst = { ...asked, period: { start: first, end: first } };
  const begun = await queryAtOneMoment(db, (run) => overview(run, onFirst, first));
  expect(begun.monthSoFar?.period).toEqual(onFirst.period);
});

test("the report of one project leaves out budgets that it shares with others", async () => {
  const [one, other] = [newProject(), newProject()];
  await storeSeries(db, [{ project: one, grouping: "none", usage: usageOf(undefined, { "": "1" }) }]);
  const hours = { scope: "all", scopeValue: undefined, metric: "hours", period: "day", amount: "5" } as const;
  const limit = { ...hours, thresholds: ["100"] };
  await storeBudgets(db, [
    { ...limit, name: "all", projects: [one, other] },
    { ...limit, name: "own", projects: [one] },
  ]);
  const namesOf = async (project: string | undefined) => {
    const { budgets } = await readReportData(db, { period: { start: back(0), end: back(0) }, project }, new Date());
    return budgets.map(({ name }) => name);
  };
  expect(await namesOf(undefined)).toEqual(["all", "own"]);
  expect(await namesOf(one.name)).toEqual(["own"]);
});

test("without a stored total, the overview takes all figures from the first grouping whose groups add up", async () => {
  const project = newProject();
  const usage = { [back(1)]: [["a", { hours: "0", requests: "7" }] as const, ["b", { requests: "2" }] as const] };
  await storeSeries(db, [
    { project, grouping: "model", usage },
    { project, grouping: "tags", usage: { [back(1)]: [[["x"], { requests: "9" }]] } },
  ]);
  const all = await overviewOf(undefined);
  expect(all).toMatchObject({
    total: { question: { metric: "requests", grouping: "model" }, total: { amount: "9" } },
    figures: [
      { metric: "hours", amount: "0" },
      { metric: "requests", amount: "9" },
    ],
  });
  const amounts = all.splits.map(({ question, groups }) => [question.grouping, groups.map(({ amount }) => amount)]);
  expect(amounts).toEqual([
    ["model", ["7", "2"]],
    ["tags", ["9"]],
  ]);
});
