// Which projects are stored as current, vanished or waiting for a confirmation after lists of projects were read.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import {
  hasVanished,
  projectsVersion,
  recordListFailure,
  storedProjectLists,
  storedProjects,
  storeReading,
} from "../../src/db/projects.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const KEY_NAME = "env ACCOUNT_KEY";
const START = new Date("2026-03-10T02:15:00Z");
const after = (minutes: number) => new Date(START.getTime() + minutes * 60_000);

beforeEach(async () => {
  await sql`truncate usage_export.project_list cascade`.execute(db);
});

/** Stores a list that was read this many minutes after START. Each letter of `ids` is the id of a project. */
async function readList(minute: number, ids: string, { name = "name", keyName = KEY_NAME } = {}) {
  const listed = [...ids].map((id) => ({ id, name: `${name} of ${id}` }));
  return storeReading(db, { keyName, listed, readAt: after(minute) });
}

async function projectsInView() {
  const { rows } = await sql<Record<"id" | "name", string> & Record<"first" | "last" | "missing" | "vanished", Date>>`
    select project_id as id, name, first_seen_at as first, last_seen_at as last, missing_since as missing,
      vanished_at as vanished
    from bi.discovered_projects order by list, project_id
  `.execute(db);
  return rows;
}

/** `lists`: "MINUTE IDS" of each list, as in readList. `waiting`: the projects that a list in doubt lacks. */
test.each([
  ["a project that the next list lacks has vanished", "0 abc, 1 acd", "acd", ""],
  ["a vanished project that is listed again is back", "0 abc, 1 ac, 2 abc", "abc", ""],
  ["half of the projects may vanish at once", "0 abcd, 1 ab", "ab", ""],
  ["no list is in doubt after an empty one", "0 , 1 a", "a", ""],
  ["a list that lacks more than half adds and removes no project", "0 abcd, 10 ax", "abcd", "bcd"],
  ["a second short list within the hour removes no project", "0 abcd, 10 ax, 69 ax", "abcd", "bcd"],
  ["a second short list an hour later confirms the first", "0 abcd, 10 ax, 70 ax", "ax", ""],
  ["a missing project that is listed again no longer waits", "0 abcd, 10 a, 20 abcd", "abcd", ""],
  ["the hour begins anew after a complete list", "0 abcd, 10 a, 20 abcd, 75 a", "abcd", "bcd"],
  ["a project must be missing from both lists to vanish", "0 abcdef, 10 ab, 80 ef", "abef", "ab"],
  ["a project that only the second list lacks waits", "0 abcdefgh, 10 abc, 1450 ab", "abc", "c"],
  ["a list in doubt does not bring back a vanished project", "0 abcde, 1 abcd, 2 e", "abcd", "abcd"],
])("after several lists: %s", async (_name, lists, current, waiting) => {
  for (const list of lists.split(", ")) {
    const [minute, ids = ""] = list.split(" ");
    await readList(Number(minute), ids);
  }

  const projects = await projectsInView();
  const idsOf = (some: typeof projects) => some.map(({ id }) => id).join("");
  expect(idsOf(projects.filter(({ vanished }) => vanished === null))).toBe(current);
  expect(idsOf(projects.filter(({ missing }) => missing !== null))).toBe(waiting);
  expect(await storedProjectLists(db)).toMatchObject([{ projects: current.length, waiting: waiting.length }]);
  expect(await Promise.all(projects.map(({ id }) => hasVanished(db, id)))).toEqual(
    projects.map(({ vanished }) => vanished !== null),
  );
});

test("the view says when a project was listed first and last", async () => {
  await readList(0, "ab");
  await readList(10, "ab");
  await readList(20, "bc");

  const none = { missing: null, vanished: null };
  expect(await projectsInView()).toMatchObject([
    { ...none, id: "a", first: START, last: after(10), vanished: after(20) },
    { ...none, id: "b", first: START, last: after(20) },
    { ...none, id: "c", first: after(20), last: after(20) },
  ]);
  expect(await storedProjects(db)).toMatchObject([{ id: "a", vanishedAt: after(20) }, { id: "b" }, { id: "c" }]);
  await readList(30, "abc");
  expect((await projectsInView())[0]).toMatchObject({ ...none, id: "a", first: START, last: after(30) });
});

test("a project that two lists in doubt lack was last seen before both", async () => {
  await readList(0, "abc");
  await readList(10, "c");
  expect(await storedProjectLists(db)).toMatchObject([{ waitingSince: after(10) }]);
  await readList(70, "c");
  expect((await projectsInView())[0]).toMatchObject({ id: "a", last: START, vanished: after(70) });
});

test("the version of the projects changes only if a project appears, vanishes or is renamed", async () => {
  await readList(0, "abcd");
  const first = await projectsVersion(db);
  await readList(10, "abcd");
  await readList(20, "a");
  expect(await projectsVersion(db)).toBe(first);
  await readList(40, "abcd", { name: "other" });
  expect((await projectsInView())[0]).toMatchObject({ name: "other of a", first: START });
  const renamed = await projectsVersion(db);
  expect(renamed).not.toBe(first);
  await readList(50, "abc", { name: "other" });
  expect(await projectsVersion(db)).not.toBe(renamed);
});

test("a list that was read earlier than the stored list changes nothing", async () => {
  await readList(10, "ab");

  expect(await readList(9, "abc")).toBeUndefined();
  expect((await projectsInView()).map(({ id }) => id)).toEqual(["a", "b"]);
});

test("a list that one key reads does not change the projects of another key", async () => {
  await readList(0, "ab");
  await readList(1, "bc", { keyName: "env OTHER_KEY" });
  await readList(2, "a");

  expect((await projectsInView()).map(({ id, vanished }) => [id, vanished === null])).toEqual([
    ["a", true],
    ["b", false],
    ["b", true],
    ["c", true],
  ]);
  expect(await hasVanished(db, "b")).toBe(false);
});

test("a list that can't be read keeps its projects", async () => {
  await readList(0, "ab");
  await recordListFailure(db, KEY_NAME, "the first reason");
  const [first] = await storedProjectLists(db);
  await recordListFailure(db, KEY_NAME, "another reason");

  expect(await storedProjectLists(db)).toEqual([{ ...first, error: "another reason" }]);
  expect(first).toMatchObject({ projects: 2, readAt: START, failingSince: expect.any(Date) });
  await readList(1, "ab");
  expect(await storedProjectLists(db)).toMatchObject([{ error: null, failingSince: null, readAt: after(1) }]);
});

test("two workers that read the same list at the same time store it once", async () => {
  const changes = await Promise.all([readList(0, "abc"), readList(0, "abc")]);

  expect(changes.filter((change) => change !== undefined)).toHaveLength(1);
  expect(await storedProjectLists(db)).toMatchObject([{ projects: 3 }]);
});
