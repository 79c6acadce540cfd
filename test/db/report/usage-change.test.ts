// Why usage changed, as `explain`, the report and the dashboard read it: over all projects, with the largest groups by themselves.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { storeListedKeys } from "../../../src/db/keys/listed-keys.ts";
import { readChangeData, readReportData } from "../../../src/db/report/report.ts";
import { type ChangeQuestion, readUsageChange } from "../../../src/db/report/usage-change.ts";
import type { ChangePart } from "../../../src/report/usage-change.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, newProject } from "../stored-usage.ts";
import { forgetAll, storeSeries, type Usage } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

beforeEach(() => forgetAll(db));

function read(question: Partial<ChangeQuestion> = {}) {
  return db.transaction().execute((tx) =>
    readUsageChange(tx, {
      period: { start: back(1), end: back(1) },
      before: { start: back(2), end: back(2) },
      metrics: ["requests"],
      groupsMax: 2,
      ...question,
    }),
  );
}

/** The requests of each group on the day before yesterday and yesterday. */
function requests(groups: Readonly<Record<string, readonly [before: string | null, after: string | null]>>): Usage {
  const onDay = (side: 0 | 1) =>
    Object.entries(groups).flatMap(([group, amounts]) => {
      const amount = amounts[side];
      return amount === null ? [] : [[group, { requests: amount }] as const];
    });
  return { [back(2)]: onDay(0), [back(1)]: onDay(1) };
}

function short(parts: readonly ChangePart[]): readonly string[] {
  return parts.map(({ part, group, project, status, groups, before, after }) =>
    [part, group, project && `in ${project}`, status, groups, `${before}>${after}`]
      .filter((word) => word !== null)
      .join(" "),
  );
}

test("the groups with the largest changes are shown, the others are one part, and all add up to the change", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "none", usage: requests({ all: ["100", "120"] }) },
    {
      project,
      grouping: "model",
      usage: requests({ a: ["50", "51"], b: ["40", "20"], c: [null, "30"], d: ["5", null], e: ["5", "17"] }),
    },
  ]);
  const { projects, metrics } = await read();
  expect(projects).toEqual([project.name]);
  expect(metrics).toMatchObject([
    { metric: "requests", before: "100", after: "120", change: "20", notCompared: null, daysCompared: 1, daysInAll: 1 },
  ]);
  const [model] = metrics[0]?.breakdowns ?? [];
  expect(model).toMatchObject({ grouping: "model", newGroups: 1, vanishedGroups: 1 });
  expect(short(model?.parts ?? [])).toEqual([
    "group c new 1 0>30",
    "group b changed 1 40>20",
    "others 3 60>68",
    "not attributed 1 0>2",
  ]);
});

test("several projects are added up and shown one by one; keys with the same name stay apart", async () => {
  const [one, other] = [
    { ...newProject(), name: "one" },
    { ...newProject(), name: "other" },
  ];
  await storeSeries(
    db,
    [one, other].flatMap((project, i) => [
      { project, grouping: "none", usage: requests({ all: ["10", i === 0 ? "14" : "13"] }) } as const,
      { project, grouping: "model", usage: requests({ nova: ["10", i === 0 ? "14" : "13"] }) } as const,
      { project, grouping: "accessor", usage: requests({ console: ["10", i === 0 ? "14" : "13"] }) } as const,
    ]),
  );
  const { metrics } = await read();
  expect(metrics).toMatchObject([{ before: "20", after: "27", daysCompared: 2, daysInAll: 2 }]);
  expect(metrics[0]?.breakdowns.map(({ grouping, parts }) => [grouping, ...short(parts)])).toEqual([
    ["project", "group one changed 1 10>14", "group other changed 1 10>13"],
    ["model", "group nova changed 1 20>27"],
    ["accessor", "group console in one changed 1 10>14", "group console in other changed 1 10>13"],
  ]);
  expect((await read({ projects: ["other"] })).metrics).toMatchObject([{ before: "10", after: "13", change: "3" }]);
});

test("a key that the service lists is known by its comment", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "none", usage: requests({ all: ["10", "14"] }) },
    { project, grouping: "accessor", usage: requests({ listed: ["6", "9"], unlisted: ["4", "5"] }) },
  ]);
  await storeListedKeys(db, project.id, [{ apiKeyId: "listed", comment: "nightly", scopes: [], tags: [] }]);
  const [accessor] = (await read()).metrics[0]?.breakdowns ?? [];
  expect(accessor?.parts.map(({ group, comment }) => [group, comment])).toEqual([
    ["listed", "nightly"],
    ["unlisted", null],
  ]);
});

test("a key's comment is that of its own project, and a blank one counts as none", async () => {
  const [one, other] = [
    { ...newProject(), name: "one" },
    { ...newProject(), name: "other" },
  ];
  await storeSeries(
    db,
    [one, other].flatMap((project, i) => [
      { project, grouping: "none", usage: requests({ all: ["10", String(20 - i)] }) } as const,
      { project, grouping: "accessor", usage: requests({ console: ["10", String(20 - i)] }) } as const,
    ]),
  );
  const listed = (comment: string) => [{ apiKeyId: "console", comment, scopes: [], tags: [] }];
  const named = async () => {
    const { breakdowns = [] } = (await read()).metrics[0] ?? {};
    const accessor = breakdowns.find(({ grouping }) => grouping === "accessor");
    return accessor?.parts.map(({ project, group, comment }) => [project, group, comment]);
  };
  const expected = [
    ["one", "console", null],
    ["other", "console", "of other"],
  ];
  await storeListedKeys(db, other.id, listed("of other"));
  expect(await named()).toEqual(expected);
  await storeListedKeys(db, one.id, listed("  "));
  expect(await named()).toEqual(expected);
});

test("the parts of a grouping add up to the total of all projects, also where a project is not read by that grouping", async () => {
  const [total, both] = [newProject(), newProject()];
  await storeSeries(db, [
    {
      project: total,
      grouping: "none",
      usage: { ...requests({ all: ["100", "150"] }), [back(0)]: [[null, { requests: "7" }]] },
    },
    { project: both, grouping: "none", usage: requests({ all: ["10", "14"] }) },
    { project: both, grouping: "model", usage: requests({ nova: ["10", "12"] }) },
  ]);
  const { metrics } = await read({ period: { start: back(1), end: back(0) } });
  const [metric] = metrics;
  expect(metric).toMatchObject({ before: "110", after: "171", change: "61" });
  const model = metric?.breakdowns.find(({ grouping }) => grouping === "model");
  expect(short(model?.parts ?? [])).toEqual([
    "group nova changed 1 10>12",
    "not attributed 1 100>152",
    "days not compared 1 0>7",
  ]);
});

test("no digit of an amount is lost", async () => {
  const project = newProject();
  const usage: Usage = {
    [back(2)]: [[null, { requests: "9007199254740993", hours: "0.1" }]],
    [back(1)]: [[null, { requests: "18014398509481987", hours: "0.30000000000000000000000004" }]],
  };
  await storeSeries(db, [{ project, grouping: "none", usage }]);
  expect((await read({ metrics: ["hours", "requests"] })).metrics).toMatchObject([
    { metric: "hours", change: "0.20000000000000000000000004" },
    { metric: "requests", change: "9007199254740994" },
  ]);
});

test("days that were not read, and days that may still change, are named", async () => {
  const project = newProject();
  const due = { start: back(4), end: back(1) };
  await storeSeries(db, [
    {
      project,
      grouping: "none",
      windowDays: 1,
      due,
      usage: Object.fromEntries([4, 2, 1].map((days) => [back(days), [[null, { requests: "5" }]]])),
    },
  ]);
  const change = await read({
    period: { start: back(2), end: back(1) },
    before: { start: back(4), end: back(3) },
  });
  expect(change).toMatchObject({ lackingDays: [back(3)], notFinalDays: [back(1)] });
  expect(change.metrics).toMatchObject([
    { daysCompared: 1, daysInAll: 2, compared: { before: "5", after: "5" }, notCompared: { before: "0", after: "5" } },
  ]);
});

test("without usage in either period there are no metrics and no projects", async () => {
  expect(await read()).toMatchObject({ metrics: [], projects: [], lackingDays: [], notFinalDays: [] });
  await storeSeries(db, [{ project: newProject(), grouping: "none", usage: requests({ all: ["1", "2"] }) }]);
  expect(await read({ metrics: ["tokens_in"] })).toMatchObject({ metrics: [] });
  const { rows } = await sql<{ days: number }>`select count(*)::integer as days from bi.usage_total`.execute(db);
  expect(rows).toEqual([{ days: 2 }]);
});

test("a report explains the change of hours, or of requests where there are no hours, by the first grouping that is read", async () => {
  const project = newProject();
  const report = () => readReportData(db, { start: back(1), end: back(1) }, new Date());
  expect((await report()).change.metrics).toEqual([]);
  await storeSeries(db, [
    { project, grouping: "none", usage: requests({ all: ["10", "14"] }) },
    { project, grouping: "tags", usage: requests({ a: ["10", "14"] }) },
    { project, grouping: "method", usage: requests({ sync: ["10", "14"] }) },
  ]);
  const { metrics } = (await report()).change;
  expect(metrics).toMatchObject([{ metric: "requests", change: "4", breakdowns: [{ grouping: "tags" }] }]);
  expect(metrics[0]?.breakdowns).toHaveLength(1);

  await forgetAll(db);
  const hours: Usage = { [back(2)]: [["nova", { hours: "0.1" }]], [back(1)]: [["nova", { hours: "0.3" }]] };
  await storeSeries(db, [{ project, grouping: "model", usage: hours }]);
  expect((await report()).change.metrics).toMatchObject([
    { metric: "hours", change: "0.2", breakdowns: [{ grouping: "model" }] },
  ]);
});

test("a page leaves the change out if it is of more projects than allowed, and says of how many", async () => {
  const [one, other] = [newProject(), newProject()];
  const usage = requests({ a: ["10", "14"] });
  await storeSeries(db, [
    { project: one, grouping: "model", usage },
    { project: other, grouping: "model", usage },
  ]);
  const ofAtMost = (changeProjectsMax?: number) =>
    readReportData(db, { start: back(1), end: back(1) }, new Date(), { changeProjectsMax });
  const { change } = await ofAtMost();
  expect(change.metrics).toMatchObject([{ metric: "requests", change: "8" }]);
  expect(await ofAtMost(2)).toMatchObject({ change, changeProjectsLeftOut: 0 });
  expect(await ofAtMost(1)).toMatchObject({ change: { metrics: [] }, changeProjectsLeftOut: 2 });
});

test("a report of which the period before was never read explains its last week against the week before", async () => {
  const project = newProject();
  const report = () => readReportData(db, { start: back(20), end: back(1) }, new Date());
  const usage = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [back(i + 1), [[null, { requests: i < 7 ? "3" : "2" }] as const]]),
  );
  await storeSeries(db, [{ project, grouping: "none", usage }]);
  expect((await report()).change).toMatchObject({
    period: { start: back(7), end: back(1) },
    before: { start: back(14), end: back(8) },
    metrics: [{ change: "7", daysCompared: 7 }],
  });
  await storeSeries(db, [{ project, grouping: "none", usage: { [back(21)]: [[null, { requests: "2" }]] } }]);
  expect((await report()).change).toMatchObject({ period: { start: back(20), end: back(1) } });
});

test("the change that a report explains is that of its total: of the configured projects, and by configured series", async () => {
  const [kept, dropped] = [newProject(), newProject()];
  await storeSeries(db, [
    { project: dropped, grouping: "none", usage: requests({ all: ["100", "1000"] }) },
    { project: kept, grouping: "none", usage: { ...requests({ all: ["10", "9"] }) } },
  ]);
  // From now on only this series is configured.
  await storeSeries(db, [{ project: kept, grouping: "model", usage: requests({ nova: ["10", "14"] }) }]);
  const { totals, change } = await readReportData(db, { start: back(1), end: back(1) }, new Date());
  expect(totals.metrics.find(({ metric }) => metric === "requests")).toMatchObject({ before: "10", amount: "14" });
  expect(change).toMatchObject({ projects: [kept.name], metrics: [{ before: "10", after: "14", change: "4" }] });
});

test("of two projects with one name, the change is of the one that is asked for, and without a retired one", async () => {
  const [one, other] = [
    { ...newProject(), name: "recreated" },
    { ...newProject(), name: "recreated" },
  ];
  const ofOne = { project: one, grouping: "none", usage: requests({ all: ["10", "20"] }) } as const;
  const ofOther = { project: other, grouping: "none", usage: requests({ all: ["1000", "2000"] }) } as const;
  const period = { start: back(1), end: back(1) };
  const changeOf = async (project?: string) => {
    const { change } = await readChangeData(db, { period, before: undefined, project }, {});
    return change.metrics.map(({ before, after }) => `${before}>${after}`);
  };
  await storeSeries(db, [ofOne, ofOther]);
  expect(await changeOf(one.id)).toEqual(["10>20"]);
  expect(await changeOf(other.id)).toEqual(["1000>2000"]);
  expect(await changeOf()).toEqual(["1010>2020"]);
  // The other is no longer configured.
  await storeSeries(db, [ofOne]);
  expect(await changeOf(one.id)).toEqual(["10>20"]);
  expect(await changeOf("recreated")).toEqual(["10>20"]);
  expect(await changeOf()).toEqual(["10>20"]);
});
