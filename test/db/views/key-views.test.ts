// Usage by the keys that made it: across rotations, and after a key is gone.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { type ListedKey, storeListedKeys } from "../../../src/db/project-facts.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { newIntent, newKey, newRotation } from "../keys/written-ledger.ts";
import { newProject, newSeries, rowOf, rowsOn, store, type ViewRow, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";

function listed(apiKeyId: string, fields: Partial<ListedKey> = {}): ListedKey {
  return { apiKeyId, comment: `comment of ${apiKeyId}`, scopes: ["member"], tags: ["b", "a"], ...fields };
}

/** Stores the requests of a day by accessor; null for usage without an accessor. */
async function use(project: Project, day: string, requests: readonly (readonly [string | null, string])[]) {
  const { seriesId } = await newSeries(db, "accessor", { project });
  const rows = requests.map(([accessor, count]) => rowOf(accessor, count, null, "accessor"));
  await store(db, seriesId, [rowsOn(day, rows)], { grouping: "accessor" });
}

async function byLineage(
  { id }: Project,
  of: "usage_by_key" | "usage_by_group" = "usage_by_key",
): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select lineage, sum(requests) as requests from bi.${sql.raw(of)} where project_id = ${id} group by lineage order by lineage
  `.execute(db);
  return rows;
}

/** A rotation that has used three keys, one after the other. */
async function threeKeys(project: Project) {
  const { job, key } = await newRotation(db, { project });
  const intents = [newIntent(), newIntent(), newIntent()];
  for (const intentId of intents) await key(intentId, "active");
  return { rotation: job.name, keys: intents.map((intentId) => newKey(intentId).apiKeyId) };
}

test("the keys of a rotation have one lineage, and the numbers of a day are those by accessor", async () => {
  const project = newProject();
  const { rotation, keys } = await threeKeys(project);
  const [first = "", second = "", third = ""] = keys;
  await use(project, "2026-03-15", [[first, "10"]]);
  await use(project, "2026-03-16", [
    [first, "4"],
    [second, "5"],
  ]);
  await use(project, "2026-03-17", [
    [third, "7"],
    ["made in the console", "2"],
    [null, "1"],
  ]);

  expect(await byLineage(project)).toEqual([
    { lineage: "made in the console", requests: "2" },
    { lineage: rotation, requests: "26" },
    { lineage: null, requests: "1" },
  ]);
  expect(await byLineage(project, "usage_by_group")).toEqual(await byLineage(project));
  const withKeys = await view(db, "usage_by_key", project);
  const without = withKeys.map(({ rotation: _, lineage, key_comment, key_tags, ...row }) => row);
  expect(without).toHaveLength(6);
  expect(without).toEqual(expect.arrayContaining([...(await view(db, "usage_by_accessor", project))]));
});

test("an accessor that is no known key is shown as it is, without rotation, comment and tags", async () => {
  const project = newProject();
  await use(project, DAY, [["somebody", "3"]]);
  expect(await view(db, "usage_by_key", project)).toMatchObject([
    { accessor: "somebody", lineage: "somebody", rotation: null, key_comment: null, key_tags: null, requests: "3" },
  ]);
});

test("a key that is deleted keeps its comment and tags", async () => {
  const project = newProject();
  await use(project, DAY, [["k1", "3"]]);
  await storeListedKeys(db, project.id, [listed("k1"), listed("k2")]);
  await storeListedKeys(db, project.id, [listed("k2")]);
  expect(await view(db, "usage_by_key", project)).toMatchObject([
    { accessor: "k1", key_comment: "comment of k1", key_tags: '["a","b"]' },
  ]);
  expect(await known(project)).toEqual(["k1 gone", "k2"]);
});

test("a key of the ledger that the service never listed has the comment with which it was created", async () => {
  const project = newProject();
  const { keys } = await threeKeys(project);
  await use(project, DAY, [[keys[0] ?? "", "3"]]);
  expect(await view(db, "usage_by_key", project)).toMatchObject([
    { key_comment: expect.stringMatching(/^usage exporter \[/), key_tags: null },
  ]);
});

async function known({ id }: Project): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    select api_key_id || case when unlisted_since is null then '' else ' gone' end as key
    from usage_export.listed_key where project_id = ${id} order by api_key_id
  `.execute(db);
  return rows.map(({ key }) => key);
}

test("a key that is listed again is no longer gone, and keeps the time at which it was first seen", async () => {
  const project = newProject();
  for (const list of [[listed("k1"), listed("k2")], [listed("k2")], [listed("k1"), listed("k2")]]) {
    await storeListedKeys(db, project.id, list);
  }
  expect(await known(project)).toEqual(["k1", "k2"]);
  const { rows } = await sql`
    select first_seen_at < last_seen_at as older from usage_export.listed_key where project_id = ${project.id}
  `.execute(db);
  expect(rows).toEqual([{ older: true }, { older: true }]);
});

test("an empty list is ignored, because it was read with a key that it should name", async () => {
  const project = newProject();
  await storeListedKeys(db, project.id, [listed("k1")]);
  await storeListedKeys(db, project.id, []);
  expect(await known(project)).toEqual(["k1"]);
});

test("fields that the service does not send again keep their values, and fields that it sends are updated", async () => {
  const project = newProject();
  await storeListedKeys(db, project.id, [listed("k1", { created: "2026-03-01T00:00:00.000001Z" })]);
  const bare = { comment: "", tags: undefined, created: "no date", scopes: ["usage:read"] };
  await storeListedKeys(db, project.id, [listed("k1", bare)]);
  const { rows } = await sql`
    select comment, tags, scopes, created_at from usage_export.listed_key where project_id = ${project.id}
  `.execute(db);
  expect(rows).toEqual([
    {
      comment: "comment of k1",
      tags: ["a", "b"],
      scopes: ["usage:read"],
      created_at: new Date("2026-03-01T00:00:00.000Z"),
    },
  ]);
});

test("a list that names a key twice, with a hostile comment and tags, is stored", async () => {
  const project = newProject();
  const hostile = `<script>"'\\\0\u202e🎉${"x".repeat(2_000)}`;
  await storeListedKeys(db, project.id, [listed("k1"), listed("k1", { comment: hostile, tags: [hostile, '"},{'] })]);
  await use(project, DAY, [["k1", "3"]]);
  const stored = hostile.replaceAll("\0", "").slice(0, 1_000);
  const [row] = await view(db, "usage_by_key", project);
  expect(row).toMatchObject({ key_comment: stored });
  expect(JSON.parse(String(row?.key_tags))).toEqual(['"},{', stored]);
});

test("bi.api_keys shows the order of a rotation's keys, when each was used, and what the service lists for it", async () => {
  const project = newProject();
  const { keys } = await threeKeys(project);
  const [first = "", second = "", third = ""] = keys;
  await use(project, "2026-03-15", [[first, "10"]]);
  await use(project, "2026-03-16", [
    [first, "4"],
    [second, "0"],
  ]);
  await storeListedKeys(db, project.id, [listed(first), listed(third)]);
  await storeListedKeys(db, project.id, [listed(third)]);
  const rows = await view(db, "api_keys", project);
  const shown = rows.map((row) => [
    row.lineage_order,
    row.api_key_id,
    row.accessor,
    row.first_seen_in_use,
    row.last_seen_in_use,
    row.key_tags,
    row.unlisted_since,
  ]);
  expect(shown.sort()).toEqual([
    [1, first, first, "2026-03-15", "2026-03-16", '["a","b"]', expect.any(Date)],
    [2, second, null, null, null, null, null],
    [3, third, null, null, null, '["a","b"]', null],
  ]);
});
