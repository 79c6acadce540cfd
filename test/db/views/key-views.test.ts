// Usage by the keys that made it: across rotations, and after a key is gone.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { type ListedKey, storeListedKeys } from "../../../src/db/project-facts.ts";
import type { Grouping, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { usedKeys } from "../keys/written-ledger.ts";
import { storeSeries } from "../reported-usage.ts";
import { daysBack, newProject, newSeries, textsOf, type Usage, type ViewRow, view } from "../stored-usage.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);

const DAY = "2026-03-17";

function listed(apiKeyId: string, fields: Partial<ListedKey> = {}): ListedKey {
  return { apiKeyId, comment: `comment of ${apiKeyId}`, scopes: ["member"], tags: ["b", "a"], ...fields };
}

const storeByKey = (project: Project, usage: Usage) => newSeries(db, "accessor", { project, usage });

const byLineage = ({ id }: Project, viewName: string) =>
  read(sql<ViewRow>`
    select lineage, sum(requests) as requests from bi.${sql.raw(viewName)} where project_id = ${id} group by lineage order by lineage
  `);

test("the keys of a rotation have one lineage", async () => {
  const project = newProject();
  const { rotation, keys } = await usedKeys(db, project, 3);
  const [first = "", second = "", third = ""] = keys;
  await storeByKey(project, {
    "2026-03-15": { [first]: "10" },
    "2026-03-16": { [first]: "4", [second]: "5" },
    "2026-03-17": { [third]: "7", "made in the console": "2", null: "1" },
  });

  for (const name of ["usage_by_key", "usage_by_group"]) {
    expect(await byLineage(project, name)).toEqual([
      { lineage: "made in the console", requests: "2" },
      { lineage: rotation, requests: "26" },
      { lineage: null, requests: "1" },
    ]);
  }
  const withKeys = await view(db, "usage_by_key", project);
  const without = withKeys.map(({ rotation: _, lineage, key_comment, key_tags, ...row }) => row);
  expect(without).toHaveLength(6);
  expect(withKeys.find(({ accessor }) => accessor === "made in the console")).toMatchObject({
    ...{ lineage: "made in the console", rotation: null, key_comment: null, key_tags: null, requests: "2" },
  });
  expect(without).toEqual(expect.arrayContaining([...(await view(db, "usage_by_accessor", project))]));
});

test("a key that is deleted keeps its comment and tags until it is listed again", async () => {
  const project = newProject();
  await storeByKey(project, { [DAY]: { k1: "3" } });
  await storeListedKeys(db, project.id, [listed("k1"), listed("k2", { comment: "half \ud83d of a character" })]);
  await storeListedKeys(db, project.id, [listed("k2")]);
  expect(await view(db, "usage_by_key", project)).toMatchObject([
    { accessor: "k1", key_comment: "comment of k1", key_tags: '["a","b"]' },
  ]);
  expect(await storedKeys(project)).toEqual(["k1 gone", "k2"]);
  const goneSince = async () => (await view(db, "listed_keys", project)).map((row) => row.unlisted_since);
  const since = await goneSince();
  await storeListedKeys(db, project.id, [listed("k2")]);
  expect(await goneSince()).toEqual(since);
  await storeListedKeys(db, project.id, [listed("k1"), listed("k2")]);
  // An empty list is not believed: it lacks even the key that it was read with.
  await storeListedKeys(db, project.id, []);
  expect(await storedKeys(project)).toEqual(["k1", "k2"]);
  const stored = await read(sql`
    select first_seen_at < last_seen_at as older from usage_export.listed_key where project_id = ${project.id}
  `);
  expect(stored).toEqual([{ older: true }, { older: true }]);
});

test("a key of the ledger that the service never listed has the comment with which it was created", async () => {
  const project = newProject();
  const { keys } = await usedKeys(db, project, 3);
  await storeByKey(project, { [DAY]: { [String(keys[0])]: "3" } });
  expect(await view(db, "usage_by_key", project)).toMatchObject([
    { key_comment: expect.stringMatching(/^usage exporter \[/), key_tags: null },
  ]);
});

async function storedKeys({ id }: Project): Promise<string[]> {
  const rows = await read(sql<{ key: string }>`
    select api_key_id || case when unlisted_since is null then '' else ' gone' end as key
    from usage_export.listed_key where project_id = ${id} order by api_key_id
  `);
  return rows.map(({ key }) => key);
}

test("a listed key changes only in the fields that the service sends again", async () => {
  const project = newProject();
  await storeListedKeys(db, project.id, [listed("k1", { created: "2026-03-01T00:00:00.000001Z" })]);
  const bare = { comment: "", tags: undefined, created: "no date", scopes: ["usage:read"] };
  await storeListedKeys(db, project.id, [listed("k1", bare)]);
  const stored = await read(sql`
    select comment, tags, scopes, created_at from usage_export.listed_key where project_id = ${project.id}
  `);
  const created_at = new Date("2026-03-01T00:00:00.000Z");
  expect(stored).toEqual([{ comment: "comment of k1", tags: ["a", "b"], scopes: ["usage:read"], created_at }]);
});

test("a list that names a key twice, with a hostile comment and tags, is stored", async () => {
  const project = newProject();
  const hostile = `<script>"'\\\0\u202e🎉${"x".repeat(2_000)}`;
  await storeListedKeys(db, project.id, [listed("k1"), listed("k1", { comment: hostile, tags: [hostile, '"},{'] })]);
  await storeByKey(project, { [DAY]: { k1: "3" } });
  const stored = hostile.replaceAll("\0", "").slice(0, 1_000);
  const [row] = await view(db, "usage_by_key", project);
  expect(row).toMatchObject({ key_comment: stored });
  expect(JSON.parse(String(row?.key_tags))).toEqual(['"},{', stored]);
});

test("bi.api_keys shows a rotation's keys with their state, use and listing", async () => {
  const project = newProject();
  const { keys } = await usedKeys(db, project, 3);
  const [first = "", second = "", third = ""] = keys;
  await storeByKey(project, { "2026-03-15": { [first]: "10" }, "2026-03-16": { [first]: "4", [second]: "0" } });
  await storeListedKeys(db, project.id, [listed(first), listed(third)]);
  await storeListedKeys(db, project.id, [listed(third)]);
  const columns =
    "lineage_order api_key_id state scopes accessor first_seen_in_use last_seen_in_use key_tags unlisted_since";
  const rows = await view(db, "api_keys", project);
  const shown = rows.map((row) => columns.split(" ").map((column) => row[column]));
  expect(shown.sort()).toEqual([
    [1, first, "draining", ["member"], first, "2026-03-15", "2026-03-16", '["a","b"]', expect.any(Date)],
    [2, second, "draining", ["member"], null, null, null, null, null],
    [3, third, "active", ["member"], null, null, null, '["a","b"]', null],
  ]);
  // A sealed key begins like this.
  expect(JSON.stringify(rows)).not.toContain("eyJ");
});

// bi.top_groups and bi.unused_keys.

/** Usage by days back. */
type Used = Readonly<Record<number, Usage[string]>>;

/** Stores each project's days of a grouping. All other series are then no longer configured. */
async function storeUsed(grouping: Grouping, ...all: readonly (readonly [Project, Used])[]): Promise<void> {
  const usageOf = (used: Used) =>
    Object.fromEntries(Object.entries(used).map(([days, rows]) => [back(Number(days)), rows]));
  await storeSeries(
    db,
    all.map(([project, used]) => ({ project, grouping, windowDays: 7, usage: usageOf(used) })),
  );
}

const listedAgo = (apiKeyId: string, daysAgo: number) => listed(apiKeyId, { created: `${back(daysAgo)}T12:00:00Z` });

const rowsOf = ({ id }: Project, call: string) =>
  read(sql<ViewRow>`select * from bi.${sql.raw(call)} where project_id = ${id}`);

test("the largest groups of a project are ranked by the days before today", async () => {
  const [one, other] = [newProject(), newProject()];
  const used = {
    0: { read: "100" },
    1: { speak: { requests: "4", hours: "9.5" }, listen: "3", agent: "4" },
    2: { listen: "2" },
    3: { agent: "50", read: { hours: "1" } },
  };
  await storeUsed("endpoint", [one, used], [other, { 1: { speak: "1" } }]);
  const placed = async (project: Project, call: string) =>
    textsOf(await rowsOf(project, call), "place group_value amount");
  // On the last two days: listen 3 + 2, agent and speak 4 each.
  expect(await placed(one, "top_groups('endpoint', 2, days => 2)")).toEqual(["1 listen 5", "2 agent 4"]);
  expect(await placed(one, "top_groups('endpoint')")).toEqual(["1 agent 54", "2 listen 5", "3 speak 4"]);
  expect(await placed(one, "top_groups('endpoint', by_metric => 'hours')")).toEqual(["1 speak 9.5", "2 read 1"]);
  expect(await placed(other, "top_groups('endpoint', 2)")).toEqual(["1 speak 1"]);
});

test("the keys of a rotation are one group, with the comment of one of them", async () => {
  const project = newProject();
  const { rotation, keys } = await usedKeys(db, project);
  const [first = "", second = ""] = keys;
  await storeUsed("accessor", [project, { 2: { [first]: "3", console: "4" }, 1: { [second]: "2" } }]);
  await storeListedKeys(db, project.id, [listedAgo("console", 40)]);
  expect(await rowsOf(project, "top_groups('accessor')")).toMatchObject([
    { place: 1, group_value: rotation, key_comment: null, amount: "5" },
    { place: 2, group_value: "console", key_comment: "comment of console", amount: "4" },
  ]);
});

test("bi.unused_keys has each listed key that is older than the days in question and has no usage on them", async () => {
  const project = newProject();
  const day = { busy: "1", "without requests": { hours: "1" }, idle: "0" };
  await storeUsed("accessor", [project, { 9: { early: "1" }, 4: { late: "1", early: "1" }, 3: day, 2: day, 1: day }]);
  const keys = ["busy", "without requests", "idle", "late", "never", "gone"].map((id) => listedAgo(id, 40));
  await storeListedKeys(db, project.id, [...keys, listedAgo("new", 2), listedAgo("early", 40)]);
  await storeListedKeys(db, project.id, [...keys.slice(0, -1), listedAgo("new", 2), listedAgo("early", 40)]);
  const unused = async (call: string) => textsOf(await rowsOf(project, call), "api_key_id last_used problem");
  const never = ["idle null null", "never null null"];
  expect(await unused("unused_keys(3)")).toEqual([...never, `early ${back(4)} null`, `late ${back(4)} null`]);
  expect(await unused("unused_keys(4)")).toEqual(never);
  // Day 5 and those before were not read, so "idle" may have been used on them.
  const unread = "usage by accessor was read on 5 of the days";
  expect(await unused("unused_keys()")).toEqual([`idle null ${unread}`, `never null ${unread}`]);
  expect(await rowsOf(project, "unused_keys(3)")).toContainEqual(
    expect.objectContaining({
      project: project.name,
      key_comment: "comment of never",
      created_at: new Date(`${back(40)}T12:00:00Z`),
    }),
  );
});

test("bi.unused_keys names a project whose keys can't be judged", async () => {
  const [unlisted, stale, foreign, ungrouped] = [newProject(), newProject(), newProject(), newProject()];
  await storeUsed(
    "accessor",
    [unlisted, { 1: { k1: "1" } }],
    [stale, { 1: { k1: "1" } }],
    [foreign, { 1: { k1: "1" } }],
  );
  await storeListedKeys(db, stale.id, [listedAgo("k1", 40)]);
  await sql`
    update usage_export.listed_key set last_seen_at = now() - interval '25 hours' where project_id = ${stale.id}
  `.execute(db);
  await storeListedKeys(db, foreign.id, [listedAgo("another", 40)]);
  const problems = async (project: Project) =>
    (await rowsOf(project, "unused_keys(1)")).map((row) => [row.api_key_id, row.problem]);
  expect(await problems(unlisted)).toEqual([[null, "the service did not list its keys"]]);
  const [[key, problem] = []] = await problems(stale);
  expect([key, problem]).toEqual([null, expect.stringMatching(/^its keys were last listed on /)]);
  expect(await problems(foreign)).toEqual([["another", "usage names none of its keys"]]);

  await storeUsed("endpoint", [ungrouped, { 1: { listen: "1" } }]);
  await storeListedKeys(db, ungrouped.id, [listedAgo("k1", 40)]);
  expect(await problems(ungrouped)).toEqual([["k1", "usage by accessor was read on 0 of the days"]]);
  // A project that is no longer configured is not named.
  expect(await problems(unlisted)).toEqual([]);
});
