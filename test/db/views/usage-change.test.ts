// bi.usage_change: the change between two periods by group, which adds up to the change of the total.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import type { Day } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { DIARIZED, forgetAll, storeSeries, type Usage } from "../reported-usage.ts";
import { daysBack, newProject, type ViewRow } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

beforeEach(() => forgetAll(db));

type Asked = {
  readonly from: Day;
  readonly to: Day;
  readonly before?: readonly [from: Day, to: Day];
  readonly grouping?: string;
  readonly metric?: string;
};

async function change({ from, to, before, grouping, metric = "requests" }: Asked): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select * from bi.usage_change(${from}::date, ${to}::date, ${before?.[0] ?? null}::date, ${before?.[1] ?? null}::date,
      metrics => array[${metric}]) as c
    where ${grouping ?? null}::text is null or "grouping" = ${grouping ?? null}
    order by project, "grouping", part, group_value nulls last
  `.execute(db);
  return rows;
}

/** A row in short: "group nova 5 -> 7 changed". */
function short({ part, group_value, amount_before, amount_after, status }: ViewRow): string {
  return [part, group_value, amount_before, "->", amount_after, status].filter((word) => word !== null).join(" ");
}

async function inShort(asked: Asked): Promise<readonly string[]> {
  return (await change(asked)).map(short);
}

/** Numbers of requests by day, counted back from today. */
function requests(byDay: Readonly<Record<number, Readonly<Record<string, string>> | string>>): Usage {
  return Object.fromEntries(
    Object.entries(byDay).map(([days, groups]) => [
      back(Number(days)),
      typeof groups === "string"
        ? [[null, { requests: groups }] as const]
        : Object.entries(groups).map(([group, count]) => [group === "" ? null : group, { requests: count }] as const),
    ]),
  );
}

const YESTERDAY = { from: back(1), to: back(1) };

test("groups are new, vanished, changed or the same, and add up to the total", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "none", usage: requests({ 2: "20", 1: "34" }) },
    {
      project,
      grouping: "model",
      usage: requests({
        2: { base: "5", old: "4", nova: "10", "": "1" },
        1: { base: "5", fresh: "9", nova: "18", "": "2" },
      }),
    },
  ]);
  expect(await inShort({ ...YESTERDAY, grouping: "none" })).toEqual(["group 20 -> 34 changed"]);
  const rows = await change({ ...YESTERDAY, grouping: "model" });
  expect(rows.map(short)).toEqual([
    "group base 5 -> 5 same",
    "group fresh -> 9 new",
    "group nova 10 -> 18 changed",
    "group old 4 -> vanished",
    "group 1 -> 2 changed",
  ]);
  expect(rows.map((row) => row.change)).toEqual(["0", "9", "8", "-4", "1"]);
  expect(rows[1]).toMatchObject({
    project_id: project.id,
    project: project.name,
    metric: "requests",
    days_compared: 1,
    days_lacking_before: 0,
    days_lacking_after: 0,
    total_from: "none",
  });
});

test("a day that was read, failed later and kept its rows is compared, and is not final", async () => {
  const project = newProject();
  const [seriesId = 0] = await storeSeries(db, [
    { project, grouping: "none", windowDays: 1, usage: requests({ 9: "10", 8: "20" }) },
  ]);
  const asked = { from: back(8), to: back(8) };
  expect(await change(asked)).toMatchObject([{ change: "10", is_final: true }]);
  await recordFailure(db, { seriesId, days: [back(9)], fetchNo: await nextFetchNo(db), reason: "down" });
  expect(await change(asked)).toMatchObject([{ change: "10", is_final: false, days_compared: 1 }]);
});

test("days without usage are compared: a complete day may have no rows", async () => {
  const project = newProject();
  await storeSeries(db, [{ project, grouping: "model", usage: { [back(2)]: [], ...requests({ 1: { nova: "3" } }) } }]);
  expect(await inShort({ ...YESTERDAY, grouping: "model" })).toEqual(["group nova -> 3 new"]);
  expect(await change({ ...YESTERDAY, grouping: "none" })).toMatchObject([
    { amount_before: "0", amount_after: "3", status: "new", days_compared: 1 },
  ]);
});

test("without a series of the total, the total is the sum of a grouping that counts each request once", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "tags", usage: requests({ 2: { a: "9" }, 1: { a: "9" } }) },
    { project, grouping: "method", usage: requests({ 2: { sync: "3", async: "1" }, 1: { sync: "6" } }) },
  ]);
  const rows = await change(YESTERDAY);
  expect(rows.map(({ grouping, ...row }) => `${grouping}: ${short({ grouping, ...row })}`)).toEqual([
    "method: group async 1 -> vanished",
    "method: group sync 3 -> 6 changed",
    "none: group 4 -> 6 changed",
    'tags: group ["a"] 9 -> 9 same',
    "tags: not attributed -5 -> -3",
  ]);
  expect(new Set(rows.map((row) => row.total_from))).toEqual(new Set(["method"]));
});

test("usage under a filter is not in it", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "none", filter: DIARIZED, usage: requests({ 2: "1", 1: "2" }) },
    { project, grouping: "model", filter: DIARIZED, usage: requests({ 2: { nova: "1" }, 1: { nova: "2" } }) },
  ]);
  expect(await change(YESTERDAY)).toEqual([]);
});

test("it can be asked for projects, metrics and groupings", async () => {
  const [one, other] = [newProject(), newProject()];
  const usage = {
    [back(2)]: [["nova", { hours: "1", requests: "1" }] as const],
    [back(1)]: [["nova", { hours: "2", requests: "3" }] as const],
  };
  await storeSeries(
    db,
    [one, other].flatMap((project) =>
      (["none", "model", "endpoint"] as const).map((grouping) => ({ project, grouping, usage })),
    ),
  );
  const asked = async (names: string) => {
    const { rows } = await sql<ViewRow>`
      select project, metric, "grouping" from bi.usage_change(${back(1)}::date, ${back(1)}::date, ${sql.raw(names)})
    `.execute(db);
    return rows
      .map(({ project, metric, grouping }) => `${project === one.name ? "one" : "other"} ${metric} ${grouping}`)
      .sort();
  };
  expect(await asked(`projects => array['${one.name}'], metrics => array['hours']`)).toEqual([
    "one hours endpoint",
    "one hours model",
    "one hours none",
  ]);
  expect(await asked(`metrics => array['requests'], groupings => array['model']`)).toEqual([
    "one requests model",
    "other requests model",
  ]);
  expect(await asked(`projects => array['nobody']`)).toEqual([]);
});

test("names are told apart by every character, and no name is taken for another row", async () => {
  const project = newProject();
  const names = ["not attributed", "'); drop schema bi; --", "\u202eevil", "a", "A", "a ", "x".repeat(3_000)];
  const groups = Object.fromEntries(names.map((name, i) => [name, String(i + 1)]));
  await storeSeries(db, [{ project, grouping: "model", usage: requests({ 2: groups, 1: groups }) }]);
  const rows = await change({ ...YESTERDAY, grouping: "model" });
  expect(rows.every(({ part, status }) => part === "group" && status === "same")).toBe(true);
  expect(Object.fromEntries(rows.map((row) => [row.group_value, row.amount_after]))).toEqual(groups);
});
