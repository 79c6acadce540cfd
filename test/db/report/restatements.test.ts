// The restatements in a report: numbers that changed after they had been stored.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { readReportData } from "../../../src/db/report/report.ts";
import type { Restatements } from "../../../src/report/report-data.ts";
import { ageStoredData } from "../../cli/age-stored-data.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, type Numbers, newProject } from "../stored-usage.ts";
import { forgetAll, storeSeries, storeUsage } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

beforeEach(() => forgetAll(db));

async function restatements(start = back(9), end = back(0)): Promise<Restatements> {
  return (await readReportData(db, { start, end }, new Date(0))).restatements;
}

function total(numbers: Numbers) {
  return [[null, numbers]] as const;
}

test("a changed number is listed with its old value, and how late the change was seen", async () => {
  const project = newProject();
  const [seriesId = 0] = await storeSeries(db, [
    { project, grouping: "none", usage: { [back(2)]: total({ requests: "9007199254740993", hours: "1" }) } },
  ]);
  await storeUsage(db, seriesId, "none", { [back(2)]: total({ requests: "9007199254740995", hours: "1" }) });
  expect(await restatements()).toEqual({
    sources: [{ project: project.name, grouping: "none" }],
    metrics: ["hours", "tokens_in", "tokens_out", "tts_characters", "requests"],
    byDaysLate: [{ daysLate: 2, numbers: 1 }],
    largest: [
      {
        project: project.name,
        grouping: "none",
        filter: "all",
        day: back(2),
        group: null,
        metric: "requests",
        old: "9007199254740993",
        new: "9007199254740995",
        seenAt: expect.any(Date),
      },
    ],
  });
});

test("changes are counted by how late they were seen, as bi.restatements has them", async () => {
  const [seriesId = 0] = await storeSeries(db, [
    {
      project: newProject(),
      grouping: "none",
      usage: { [back(3)]: total({ requests: "1", hours: "1" }), [back(2)]: total({ requests: "1", total_hours: "1" }) },
    },
  ]);
  const changed = {
    [back(3)]: total({ requests: "2", hours: "2" }),
    [back(2)]: total({ requests: "2", total_hours: "2" }),
  };
  await storeUsage(db, seriesId, "none", changed);
  const { byDaysLate } = await restatements();
  expect(byDaysLate).toEqual([
    { daysLate: 2, numbers: 1 },
    { daysLate: 3, numbers: 2 },
  ]);
  const { rows } = await sql`
    select days_late as "daysLate", count(*)::integer as numbers from bi.restatements
    where metric in ('hours', 'tokens_in', 'tokens_out', 'tts_characters', 'requests') group by days_late order by days_late
  `.execute(db);
  expect(byDaysLate).toEqual(rows);
});

test("the largest changes come first, measured by their share of the metric's total, whatever its unit", async () => {
  const [large, small] = [newProject(), newProject()];
  const ids = await storeSeries(db, [
    {
      project: large,
      grouping: "none",
      usage: { [back(2)]: total({ requests: "900", tts_characters: "9000000", hours: "10" }) },
    },
    { project: small, grouping: "none", usage: { [back(2)]: total({ requests: "1", hours: "1" }) } },
  ]);
  await storeUsage(db, ids[0] ?? 0, "none", {
    [back(2)]: total({ requests: "1000", tts_characters: "9000100", hours: "10" }),
  });
  await storeUsage(db, ids[1] ?? 0, "none", { [back(2)]: total({ requests: "3", hours: "6" }) });
  const { largest } = await restatements();
  expect(largest.map(({ project, metric, new: now }) => [project, metric, now])).toEqual([
    [small.name, "hours", "6"],
    [large.name, "requests", "1000"],
    [small.name, "requests", "3"],
    [large.name, "tts_characters", "9000100"],
  ]);
});

test("only the twenty largest changes are listed", async () => {
  const days = Array.from({ length: 25 }, (_, i) => i + 1);
  const usage = (factor: number) =>
    Object.fromEntries(days.map((day) => [back(day), total({ requests: String(100 + day * factor) })]));
  const [seriesId = 0] = await storeSeries(db, [{ project: newProject(), grouping: "none", usage: usage(0) }]);
  await storeUsage(db, seriesId, "none", usage(1));
  const { largest, byDaysLate } = await restatements(back(25));
  expect(largest.map(({ day }) => day)).toEqual(days.slice(5).reverse().map(back));
  expect(byDaysLate).toHaveLength(25);
});

test("changes of days outside the period are left out", async () => {
  const [seriesId = 0] = await storeSeries(db, [
    { project: newProject(), grouping: "none", usage: { [back(3)]: total({ requests: "1" }) } },
  ]);
  await storeUsage(db, seriesId, "none", { [back(3)]: total({ requests: "2" }) });
  expect(await restatements(back(2))).toMatchObject({ byDaysLate: [], largest: [] });
});

test("if the total is listed, the same change of its groups is not", async () => {
  const project = newProject();
  const of = (requests: string) => ({ [back(2)]: [["nova-3", { requests }]] as const });
  const ids = await storeSeries(db, [
    { project, grouping: "none", usage: of("1") },
    { project, grouping: "model", usage: of("1") },
  ]);
  await storeUsage(db, ids[0] ?? 0, "none", of("2"));
  await storeUsage(db, ids[1] ?? 0, "model", of("2"));
  expect((await restatements()).largest).toMatchObject([{ grouping: "none", group: null }]);
});

test("for a project without a total the changes of groups are listed, also of a group that appeared or disappeared", async () => {
  const usage = (rows: Readonly<Record<string, string>>) => ({
    [back(2)]: Object.entries(rows).map(([model, requests]) => [model, { requests }] as const),
  });
  const [seriesId = 0] = await storeSeries(db, [
    { project: newProject(), grouping: "tags", usage: usage({ a: "5", went: "1" }) },
  ]);
  await storeUsage(db, seriesId, "tags", usage({ a: "5", late: "3" }));
  expect((await restatements()).largest).toMatchObject([
    { group: '["late"]', old: null, new: "3" },
    { group: '["went"]', old: "1", new: null },
  ]);
});

test("a changed number of a day is a restatement only after the first reading since the day was over", async () => {
  const [seriesId = 0] = await storeSeries(db, [
    { project: newProject(), grouping: "none", usage: { [back(0)]: total({ requests: "1" }) } },
  ]);
  const readAgain = (day: number, requests: string) =>
    storeUsage(db, seriesId, "none", { [back(day)]: total({ requests }) });
  await readAgain(0, "5");
  await ageStoredData(db, 1);
  await readAgain(1, "9");
  expect(await restatements()).toMatchObject({ byDaysLate: [], largest: [] });

  await readAgain(1, "10");
  expect(await restatements()).toMatchObject({
    byDaysLate: [{ daysLate: 1, numbers: 1 }],
    largest: [{ day: back(1), old: "9", new: "10" }],
  });
});
