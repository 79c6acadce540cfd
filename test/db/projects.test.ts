// Which projects are stored as known, vanished or in doubt: the decisions are tested in test/usage/project-list.test.ts.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { recordListFailure, storedLists, storedProjects, storeReading } from "../../src/db/projects.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const LIST = "env ACCOUNT_KEY";
const START = new Date("2026-03-10T02:15:00Z");
const after = (minutes: number) => new Date(START.getTime() + minutes * 60_000);

beforeEach(async () => {
  await sql`truncate usage_export.project_list cascade`.execute(db);
});

async function read(minute: number, ids: string, how: { isConfirmed?: boolean; list?: string } = {}) {
  const listed = [...ids].map((id) => ({ id, name: `name of ${id}` }));
  return storeReading(db, { list: LIST, listed, readAt: after(minute), ...how });
}

async function shown() {
  const { rows } = await sql<Record<string, Date | string | null>>`
    select project_id as id, first_seen_at as first, last_seen_at as last, missing_since as missing, vanished_at as vanished
    from bi.discovered_projects order by 1
  `.execute(db);
  return rows;
}

test("the view says since when a project is known, and when one that is gone was listed last", async () => {
  await read(0, "ab");
  await read(10, "ab");
  await read(20, "bc");

  const none = { missing: null, vanished: null };
  expect(await shown()).toEqual([
    { ...none, id: "a", first: START, last: after(10), vanished: after(20) },
    { ...none, id: "b", first: START, last: after(20) },
    { ...none, id: "c", first: after(20), last: after(20) },
  ]);
});

test("a list in doubt is stored as such, and ended by a list with the projects or by one that confirms it", async () => {
  await read(0, "abc");
  await read(10, "c");
  expect(await storedLists(db)).toMatchObject([{ projects: 3, waiting: 2, waitingSince: after(10), vanished: 0 }]);

  await read(20, "abc");
  expect(await storedLists(db)).toMatchObject([{ projects: 3, waiting: 0, waitingSince: null }]);

  await read(30, "c");
  await read(90, "c");
  expect(await storedLists(db)).toMatchObject([{ projects: 1, waiting: 0, waitingSince: null }]);
  expect((await shown()).find(({ id }) => id === "a")).toMatchObject({ last: after(20), vanished: after(90) });
});

test("a list that was read before the stored one changes nothing", async () => {
  await read(10, "ab");

  expect(await read(9, "abc")).toBeUndefined();
  expect((await storedProjects(db)).map(({ id }) => id)).toEqual(["a", "b"]);
});

test("the lists of two keys are apart", async () => {
  await read(0, "ab");
  await read(1, "bc", { list: "env OTHER_KEY" });
  await read(2, "a");

  const current = (await storedProjects(db)).filter(({ vanishedAt }) => !vanishedAt);
  expect(current.map(({ list, id }) => `${list} ${id}`)).toEqual([`${LIST} a`, "env OTHER_KEY b", "env OTHER_KEY c"]);
});

test("a failure keeps the projects and the moment at which it began, until a list is read", async () => {
  await read(0, "ab");
  await recordListFailure(db, LIST, "the first reason");
  const [first] = await storedLists(db);
  await recordListFailure(db, LIST, "another reason");

  expect(await storedLists(db)).toEqual([{ ...first, error: "another reason" }]);
  expect(first).toMatchObject({ projects: 2, readAt: START, failingSince: expect.any(Date) });
  await read(1, "ab");
  expect(await storedLists(db)).toMatchObject([{ error: null, failingSince: null, readAt: after(1) }]);
});

test("two workers that read the same list at the same time store it once", async () => {
  const changes = await Promise.all([read(0, "abc"), read(0, "abc")]);

  expect(changes.filter((change) => change !== undefined)).toHaveLength(1);
  expect(await storedLists(db)).toMatchObject([{ projects: 3, vanished: 0 }]);
});
