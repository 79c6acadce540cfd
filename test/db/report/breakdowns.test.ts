// Usage by day and group in a report.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { readReportData } from "../../../src/db/report/report.ts";
import type { Breakdown } from "../../../src/report/report-data.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, type Numbers, newProject } from "../stored-usage.ts";
import { DIARIZED, forgetAll, storeSeries } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const days = [back(3), back(2), back(1)];

beforeEach(() => forgetAll(db));

async function breakdown(grouping: Breakdown["grouping"] = "model"): Promise<Breakdown | undefined> {
  const { breakdowns } = await readReportData(db, { start: back(3), end: back(1) }, new Date(0));
  return breakdowns.find((one) => one.grouping === grouping);
}

function requests(counts: Readonly<Record<string, string>>): readonly (readonly [string, Numbers])[] {
  return Object.entries(counts).map(([value, count]) => [value, { requests: count, hours: `${count}.5` }]);
}

test("groups are added up over the projects, day by day, the largest first", async () => {
  const [one, other] = [newProject(), newProject()];
  await storeSeries(db, [
    {
      project: one,
      grouping: "model",
      usage: { [back(4)]: requests({ old: "9" }), [back(3)]: requests({ a: "1", b: "5" }) },
    },
    {
      project: other,
      grouping: "model",
      usage: { [back(3)]: requests({ a: "2" }), [back(1)]: requests({ a: "9007199254740993" }) },
    },
  ]);
  expect(await breakdown()).toEqual({
    grouping: "model",
    projects: expect.arrayContaining([one.name, other.name]),
    days,
    incompleteDays: [],
    unreadDays: [back(2), back(1)],
    groups: [
      { group: "a", hours: ["4", "0", "9007199254740993.5"], requests: ["3", "0", "9007199254740993"] },
      { group: "b", hours: ["5.5", "0", "0"], requests: ["5", "0", "0"] },
    ],
    rest: undefined,
  });
});

test("the breakdown by model comes before the one by endpoint, and a grouping that no project is read by has none", async () => {
  const project = newProject();
  const usage = { [back(1)]: requests({ a: "1" }) };
  await storeSeries(db, [
    { project, grouping: "endpoint", usage },
    { project, grouping: "model", usage },
    { project, grouping: "method", usage },
  ]);
  const { breakdowns } = await readReportData(db, { start: back(3), end: back(1) }, new Date(0));
  expect(breakdowns.map(({ grouping }) => grouping)).toEqual(["model", "endpoint"]);

  await storeSeries(db, [{ project, grouping: "endpoint", usage }]);
  expect(await breakdown("model")).toBeUndefined();
});

test("all groups after the eight largest are added up as the rest", async () => {
  const counts = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`model ${i}`, String(100 + i)]));
  await storeSeries(db, [
    {
      project: newProject(),
      grouping: "model",
      usage: { [back(3)]: requests(counts), [back(1)]: requests({ "model 0": "1" }) },
    },
  ]);
  const { groups = [], rest } = (await breakdown()) ?? {};
  expect(groups.map(({ group }) => group)).toEqual(["10", "9", "8", "7", "6", "5", "4", "3"].map((i) => `model ${i}`));
  expect(rest).toEqual({ groupCount: 3, hours: ["304.5", "0", "1.5"], requests: ["303", "0", "1"] });
});

test("usage without a value of the dimension is a group of its own, at its rank or in the rest", async () => {
  const nine = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`model ${i}`, String(100 + i)]));
  const of = (count: string) => ({ [back(1)]: [...requests(nine), [null, { hours: count, requests: "1" }] as const] });
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage: of("1000") }]);
  expect((await breakdown())?.groups[0]).toEqual({ group: null, hours: ["0", "0", "1000"], requests: ["0", "0", "1"] });

  await forgetAll(db);
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage: of("2") }]);
  const small = await breakdown();
  expect(small?.groups.map(({ group }) => group)).not.toContain(null);
  expect(small?.rest).toMatchObject({ groupCount: 2, hours: ["0", "0", "102.5"] });
});

test("groups without hours come last, ordered by their requests", async () => {
  const usage = {
    [back(1)]: [
      ["a", { requests: "1" }],
      ["b", { requests: "3" }],
      ["c", { tokens_in: "9" }],
      ["d", { hours: "0.5" }],
    ],
  } as const;
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage }]);
  expect((await breakdown())?.groups).toEqual([
    { group: "d", hours: ["0", "0", "0.5"], requests: ["0", "0", "0"] },
    { group: "b", hours: ["0", "0", "0"], requests: ["0", "0", "3"] },
    { group: "a", hours: ["0", "0", "0"], requests: ["0", "0", "1"] },
    { group: "c", hours: ["0", "0", "0"], requests: ["0", "0", "0"] },
  ]);
});

test("a group that the service no longer names is not listed", async () => {
  const part = { project: newProject(), grouping: "model" } as const;
  await storeSeries(db, [{ ...part, usage: { [back(1)]: requests({ stays: "1", goes: "9" }) } }]);
  await storeSeries(db, [{ ...part, usage: { [back(1)]: requests({ stays: "1" }) } }]);
  expect((await breakdown())?.groups.map(({ group }) => group)).toEqual(["stays"]);
});

test("a breakdown does not include series that are filtered or no longer configured", async () => {
  const project = newProject();
  const usage = { [back(1)]: requests({ a: "1", b: "1" }) };
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage }]);
  await storeSeries(db, [
    { project, grouping: "model", usage: { [back(1)]: requests({ a: "1" }) } },
    { project, grouping: "model", filter: DIARIZED, usage },
  ]);
  expect((await breakdown())?.groups).toMatchObject([{ group: "a", requests: ["0", "0", "1"] }]);
});

test("a breakdown lists the days that are not complete, and those that were neither due nor read", async () => {
  const due = { start: back(2), end: back(1) };
  await storeSeries(db, [
    { project: newProject(), grouping: "model", due, usage: { [back(2)]: requests({ a: "1" }) } },
  ]);
  expect(await breakdown()).toMatchObject({ incompleteDays: [back(1)], unreadDays: [back(3)] });
});

test("names are returned unchanged", async () => {
  const hostile = [
    `<script>alert("1")</script>`,
    "' or 1=1 --",
    "\u202eevil\u2066",
    "🎙️ voix",
    "x".repeat(500),
    "\\",
    "$1",
  ];
  const usage = { [back(1)]: hostile.map((name, i) => [name, { hours: String(99 - i) }] as const) };
  const project = { ...newProject(), name: `</title>"'&\u202e` };
  await storeSeries(db, [{ project, grouping: "model", usage }]);
  const data = await breakdown();
  expect(data?.groups.map(({ group }) => group)).toEqual(hostile);
  expect(data?.projects).toEqual([project.name]);
});

test("the amounts of the groups and the rest add up to those of bi.usage_by_model", async () => {
  const some = (factor: number) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`m${i}`, String((i * 7 * factor) % 13)]));
  await storeSeries(db, [
    { project: newProject(), grouping: "model", usage: { [back(3)]: requests(some(1)), [back(2)]: requests(some(3)) } },
    { project: newProject(), grouping: "model", usage: { [back(2)]: requests(some(5)) } },
  ]);
  const { groups = [], rest } = (await breakdown()) ?? {};
  const added = days.map((_, i) =>
    [...groups, ...(rest ? [rest] : [])].reduce((sum, { hours }) => sum + Number(hours[i]), 0),
  );
  const { rows } = await sql<{ day: string; hours: number }>`
    select usage_date as day, sum(hours)::double precision as hours from bi.usage_by_model group by usage_date
  `.execute(db);
  const stored = new Map(rows.map(({ day, hours }) => [day, hours]));
  expect(added).toEqual(days.map((day) => stored.get(day) ?? 0));
});
