// Which API keys and tags used the most, in a report.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { storeListedKeys } from "../../../src/db/keys/listed-keys.ts";
import { readReportData } from "../../../src/db/report/report.ts";
import type { Ranking } from "../../../src/report/report-data.ts";
import { testDatabase } from "../../support/database.ts";
import { newIntent, newKey, newRotation } from "../keys/written-ledger.ts";
import { daysBack, type Numbers, newProject } from "../stored-usage.ts";
import { forgetAll, storeSeries } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

beforeEach(() => forgetAll(db));

async function ranking(grouping: Ranking["grouping"]): Promise<Ranking | undefined> {
  const { rankings } = await readReportData(db, { start: back(2), end: back(1) }, new Date(0));
  return rankings.find((one) => one.grouping === grouping);
}

function hours(amounts: Readonly<Record<string, string>>): readonly (readonly [string, Numbers])[] {
  return Object.entries(amounts).map(([value, amount]) => [value, { hours: amount, requests: "1" }]);
}

test("groups are ordered by their hours in the period, and each has its hours in the period before", async () => {
  const [one, other] = [newProject(), newProject()];
  await storeSeries(db, [
    {
      project: one,
      grouping: "accessor",
      usage: {
        [back(3)]: hours({ k1: "8", gone: "99" }),
        [back(2)]: hours({ k1: "1.25", k2: "3" }),
        [back(1)]: hours({ k1: "1.25" }),
      },
    },
    { project: other, grouping: "accessor", usage: { [back(1)]: hours({ k1: "9007199254740993.1" }) } },
  ]);
  expect(await ranking("accessor")).toEqual({
    grouping: "accessor",
    projects: expect.arrayContaining([one.name, other.name]),
    incompleteDays: 0,
    incompleteDaysBefore: 0,
    unreadDays: 1,
    unreadDaysBefore: 3,
    groups: [
      {
        project: other.name,
        projectId: other.id,
        group: "k1",
        comment: null,
        hours: "9007199254740993.1",
        requests: "1",
        hoursBefore: null,
        requestsBefore: null,
      },
      {
        project: one.name,
        projectId: one.id,
        group: "k2",
        comment: null,
        hours: "3",
        requests: "1",
        hoursBefore: null,
        requestsBefore: null,
      },
      {
        project: one.name,
        projectId: one.id,
        group: "k1",
        comment: null,
        hours: "2.5",
        requests: "2",
        hoursBefore: "8",
        requestsBefore: "1",
      },
    ],
    groupCount: 3,
    hours: "9007199254740998.6",
    requests: "4",
  });
});

test("the keys of a rotation are one group, with the comment of the key that was used last", async () => {
  const project = newProject();
  const { job, key } = await newRotation(db, { project });
  const [first, second] = [newIntent(), newIntent()];
  for (const intent of [first, second]) await key(intent, "active");
  const [before, after] = [newKey(first).apiKeyId, newKey(second).apiKeyId];
  await storeListedKeys(db, project.id, [
    { apiKeyId: before, comment: "z, the older", scopes: [], tags: [] },
    { apiKeyId: after, comment: "a, the newer", scopes: [], tags: [] },
    { apiKeyId: "console", comment: "by hand", scopes: [], tags: [] },
  ]);
  await storeSeries(db, [
    {
      project,
      grouping: "accessor",
      usage: {
        [back(3)]: hours({ [before]: "4" }),
        [back(2)]: hours({ [before]: "1", console: "2" }),
        [back(1)]: hours({ [after]: "5" }),
      },
    },
  ]);
  expect((await ranking("accessor"))?.groups).toMatchObject([
    { group: job.name, comment: "a, the newer", hours: "6", hoursBefore: "4" },
    { group: "console", comment: "by hand", hours: "2", hoursBefore: null },
  ]);
});

test("keys with the same identifier in two projects have a comment each", async () => {
  const projects = [newProject(), newProject()];
  for (const { id } of projects) {
    await storeListedKeys(db, id, [{ apiKeyId: "k1", comment: `of ${id}`, scopes: [], tags: [] }]);
  }
  await storeSeries(
    db,
    projects.map((project) => ({ project, grouping: "accessor", usage: { [back(1)]: hours({ k1: "1" }) } })),
  );
  const groups = (await ranking("accessor"))?.groups ?? [];
  expect(groups.map(({ project, comment }) => [project, comment]).sort()).toEqual(
    projects.map(({ id, name }) => [name, `of ${id}`]).sort(),
  );
});

test("only ten groups are listed, with the number of all groups in the period", async () => {
  const amounts = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`k${i}`, String(100 - i)]));
  await storeSeries(db, [
    {
      project: newProject(),
      grouping: "accessor",
      usage: { [back(4)]: hours({ before: "1" }), [back(1)]: hours(amounts) },
    },
  ]);
  const { groups, groupCount, requests } = (await ranking("accessor")) ?? {};
  expect(groups?.map(({ group }) => group)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((i) => `k${i}`));
  expect({ groupCount, requests }).toEqual({ groupCount: 12, requests: "12" });
});

test("usage without an accessor is a group of its own, with its hours in the period before", async () => {
  const of = (amount: string) => [[null, { hours: amount }]] as const;
  await storeSeries(db, [
    { project: newProject(), grouping: "accessor", usage: { [back(3)]: of("2"), [back(1)]: of("3") } },
  ]);
  expect((await ranking("accessor"))?.groups).toMatchObject([
    { group: null, comment: null, hours: "3", hoursBefore: "2", requests: null },
  ]);
});

test("each set of tags is a group of its own, and there is no sum of the groups", async () => {
  await storeSeries(db, [
    {
      project: newProject(),
      grouping: "tags",
      usage: {
        [back(1)]: [
          [["b", "a"], { hours: "2" }],
          [["a"], { hours: "3" }],
          [[], { hours: "1" }],
        ],
      },
    },
  ]);
  expect(await ranking("tags")).toMatchObject({
    groups: [
      { group: '["a"]', hours: "3" },
      { group: '["a","b"]', hours: "2" },
      { group: null, hours: "1" },
    ],
    groupCount: 3,
    hours: null,
    requests: null,
  });
});

test("a period without usage has no groups, and a grouping that no project is read by has no ranking", async () => {
  await storeSeries(db, [
    { project: newProject(), grouping: "accessor", usage: { [back(4)]: hours({ before: "1" }), [back(1)]: [] } },
  ]);
  expect(await ranking("accessor")).toMatchObject({ groups: [], groupCount: 0, hours: null, requests: null });
  expect(await ranking("tags")).toBeUndefined();
});

test("names and comments are returned unchanged", async () => {
  const project = newProject();
  const hostile = `</script>"'&\u202e🎉${"x".repeat(400)}`;
  await storeListedKeys(db, project.id, [{ apiKeyId: hostile, comment: hostile, scopes: [], tags: [] }]);
  await storeSeries(db, [{ project, grouping: "accessor", usage: { [back(1)]: hours({ [hostile]: "1" }) } }]);
  expect((await ranking("accessor"))?.groups).toMatchObject([{ group: hostile, comment: hostile }]);
});

test("the amounts are those of bi.usage_by_key", async () => {
  const amounts = (factor: number) =>
    Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`k${i}`, `${(i * 7 * factor) % 13}.5`]));
  await storeSeries(db, [
    {
      project: newProject(),
      grouping: "accessor",
      usage: { [back(2)]: hours(amounts(1)), [back(1)]: hours(amounts(3)) },
    },
    { project: newProject(), grouping: "accessor", usage: { [back(1)]: hours(amounts(5)) } },
  ]);
  const { rows } = await sql`
    select project, lineage as "group", trim_scale(sum(hours))::text as hours, sum(requests)::text as requests
    from bi.usage_by_key where usage_date between ${back(2)}::date and ${back(1)}::date
    group by project, lineage order by sum(hours) desc, sum(requests) desc, lineage, min(project_id) limit 10
  `.execute(db);
  const groups = (await ranking("accessor"))?.groups ?? [];
  expect(groups.map(({ project, group, hours, requests }) => ({ project, group, hours, requests }))).toEqual(rows);
});
