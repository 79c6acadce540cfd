// bi.top_groups and bi.unused_keys.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { type ListedKey, storeListedKeys } from "../../../src/db/project-facts.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { Grouping, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { newIntent, newKey, newRotation } from "../keys/written-ledger.ts";
import { configured, daysBack, type Numbers, newProject, rowOf, rowsOn, store, type ViewRow } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

type Used = readonly [daysAgo: number, numbers: Readonly<Record<string, Numbers | string>>];

/** Stores the days of a grouping of each project; the other series are then no longer configured. */
async function use(grouping: Grouping, days: readonly (readonly [Project, readonly Used[]])[]): Promise<void> {
  const ids = await registerSeries(
    db,
    days.map(([project]) => configured(project, grouping, { windowDays: 7 })),
  );
  for (const [project, used] of days) {
    const seriesId = seriesIdOf(ids, configured(project, grouping).series);
    const slices = used.map(([daysAgo, numbers]) =>
      rowsOn(
        back(daysAgo),
        Object.entries(numbers).map(([value, of]) => rowOf(value, of, null, grouping)),
      ),
    );
    await store(db, seriesId, slices, { grouping, emptyGuard: "off", cliffGuard: "off" });
  }
}

function listed(apiKeyId: string, daysAgo: number): ListedKey {
  const created = `${back(daysAgo)}T12:00:00Z`;
  return { apiKeyId, comment: `comment of ${apiKeyId}`, scopes: ["member"], created };
}

async function rowsOf({ id }: Project, call: string): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`select * from bi.${sql.raw(call)} where project_id = ${id}`.execute(db);
  return rows;
}

test("the largest groups are those of the days before today, each project apart, and equal ones by name", async () => {
  const [one, other] = [newProject(), newProject()];
  await use("endpoint", [
    [
      one,
      [
        [0, { read: "100" }],
        [1, { speak: { requests: "4", hours: "9.5" }, listen: "3", agent: { requests: "4" } }],
        [2, { listen: "2" }],
        [3, { agent: "50", read: { hours: "1" } }],
      ],
    ],
    [other, [[1, { speak: "1" }]]],
  ]);
  const placed = async (project: Project, call: string) =>
    (await rowsOf(project, call)).map((row) => [row.place, row.group_value, row.amount]);
  // On the last two days: listen 3 + 2, agent and speak 4 each.
  expect(await placed(one, "top_groups('endpoint', 2, days => 2)")).toEqual([
    [1, "listen", "5"],
    [2, "agent", "4"],
  ]);
  expect(await placed(one, "top_groups('endpoint')")).toEqual([
    [1, "agent", "54"],
    [2, "listen", "5"],
    [3, "speak", "4"],
  ]);
  expect(await placed(one, "top_groups('endpoint', by_metric => 'hours')")).toEqual([
    [1, "speak", "9.5"],
    [2, "read", "1"],
  ]);
  expect(await placed(other, "top_groups('endpoint', 2)")).toEqual([[1, "speak", "1"]]);
});

test("the keys of a rotation are one group, with the comment of one of them", async () => {
  const project = newProject();
  const { job, key } = await newRotation(db, { project });
  const intents = [newIntent(), newIntent()];
  for (const intentId of intents) await key(intentId, "active");
  const [first = "", second = ""] = intents.map((intentId) => newKey(intentId).apiKeyId);
  await use("accessor", [
    [
      project,
      [
        [2, { [first]: "3", console: "4" }],
        [1, { [second]: "2" }],
      ],
    ],
  ]);
  await storeListedKeys(db, project.id, [listed("console", 40)]);
  expect(await rowsOf(project, "top_groups('accessor')")).toMatchObject([
    { place: 1, group_value: job.name, key_comment: null, amount: "5" },
    { place: 2, group_value: "console", key_comment: "comment of console", amount: "4" },
  ]);
});

test("an unused key is listed and older than the days, and has no usage on them", async () => {
  const project = newProject();
  const days = [1, 2, 3].map((n): Used => [n, { busy: "1", "without requests": { hours: "1" }, idle: "0" }]);
  await use("accessor", [[project, [[4, { late: "1", early: "1" }], ...days, [9, { early: "1" }]]]]);
  const keys = ["busy", "without requests", "idle", "late", "never", "gone"].map((id) => listed(id, 40));
  await storeListedKeys(db, project.id, [...keys, listed("new", 2), listed("early", 40)]);
  await storeListedKeys(db, project.id, [...keys.slice(0, -1), listed("new", 2), listed("early", 40)]);
  const unused = async (call: string) =>
    (await rowsOf(project, call)).map((row) => [row.api_key_id, row.last_used, row.problem]);
  expect(await unused("unused_keys(3)")).toEqual([
    ["idle", null, null],
    ["never", null, null],
    ["early", back(4), null],
    ["late", back(4), null],
  ]);
  expect(await unused("unused_keys(4)")).toEqual([
    ["idle", null, null],
    ["never", null, null],
  ]);
  // Day 5 and those before were not read, so "idle" may have been used on them.
  expect(await unused("unused_keys()")).toEqual([
    ["idle", null, "usage by accessor was read on 5 of the days"],
    ["never", null, "usage by accessor was read on 5 of the days"],
  ]);
  expect(await rowsOf(project, "unused_keys(3)")).toContainEqual(
    expect.objectContaining({
      project: project.name,
      key_comment: "comment of never",
      created_at: new Date(`${back(40)}T12:00:00Z`),
    }),
  );
});

test("a project whose keys can't be judged is named", async () => {
  const [unlisted, stale, foreign, ungrouped] = [newProject(), newProject(), newProject(), newProject()];
  await use(
    "accessor",
    [unlisted, stale, foreign].map((project) => [project, [[1, { k1: "1" }]]]),
  );
  await storeListedKeys(db, stale.id, [listed("k1", 40)]);
  await sql`
    update usage_export.listed_key set last_seen_at = now() - interval '25 hours' where project_id = ${stale.id}
  `.execute(db);
  await storeListedKeys(db, foreign.id, [listed("another", 40)]);
  const problems = async (project: Project) =>
    (await rowsOf(project, "unused_keys(1)")).map((row) => [row.api_key_id, row.problem]);
  expect(await problems(unlisted)).toEqual([[null, "the service did not list its keys"]]);
  const [[key, problem] = []] = await problems(stale);
  expect([key, problem]).toEqual([null, expect.stringMatching(/^its keys were last listed on /)]);
  expect(await problems(foreign)).toEqual([["another", "usage names none of its keys"]]);

  await use("endpoint", [[ungrouped, [[1, { listen: "1" }]]]]);
  await storeListedKeys(db, ungrouped.id, [listed("k1", 40)]);
  expect(await problems(ungrouped)).toEqual([["k1", "usage by accessor was read on 0 of the days"]]);
  // A project that is no longer configured is not named.
  expect(await problems(unlisted)).toEqual([]);
});
