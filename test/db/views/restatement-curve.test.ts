// How much of a day was known how soon, from histories that a test knows.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { SnapshotRow } from "../../../src/usage/normalise.ts";
import type { Grouping, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, newSeries, rowOf, rowsOn, store, total, view } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

const WINDOW = { windowDays: 4 };

/** The rows that are read so many days after the day. */
type Reading = readonly [daysAfter: number, rows: readonly SnapshotRow[]];

/** Reads a day again and again as time goes by, until it is long over. */
async function live(seriesId: number, readings: readonly Reading[], grouping: Grouping = "endpoint"): Promise<void> {
  let age = 0;
  for (const [daysAfter, rows] of readings) {
    await pass(seriesId, daysAfter - age);
    await store(db, seriesId, [rowsOn(back(daysAfter), rows)], { grouping, emptyGuard: "off", cliffGuard: "off" });
    age = daysAfter;
  }
  await pass(seriesId, 20);
}

/** What was stored of the series becomes that much older. */
async function pass(seriesId: number, days: number): Promise<void> {
  const moments = {
    slice: ["closed_at"],
    snapshot_row: ["first_seen_at", "last_changed_at"],
    superseded_row: ["first_seen_at", "last_changed_at", "superseded_at"],
  };
  for (const [table, columns] of Object.entries(moments)) {
    const older = columns.map((column) => `${column} = ${column} - make_interval(hours => ${24 * days})`);
    await sql`
      update ${sql.table(`usage_export.${table}`)} set usage_date = usage_date - ${sql.lit(days)}, ${sql.raw(older.join())}
      where series_id = ${seriesId}
    `.execute(db);
  }
}

const listen = (requests: string) => [rowOf("listen", requests)];
const hours = (amount: string) => [rowOf("listen", { hours: amount })];

/** Of a metric, each number of days with its share and how many days it rests on. */
async function curve(project: Project, metric = "requests"): Promise<readonly (readonly [number, number, number])[]> {
  const rows = await view(db, "restatement_curve", project);
  return rows
    .filter((row) => row.metric === metric)
    .map((row) => [Number(row.days_after), Number(row.known_share), Number(row.days)] as const)
    .sort(([a], [b]) => a - b);
}

test("of a day that grew for three days, each day after it has the share that was known by then", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await live(seriesId, [
    [1, listen("94")],
    [2, listen("98")],
    [3, listen("100")],
    [4, listen("100")],
  ]);
  expect(await curve(project)).toEqual([
    [1, 0.94, 1],
    [2, 0.98, 1],
    [3, 1, 1],
    [4, 1, 1],
  ]);
});

test("a row says which series and metric it is of, in exact numbers", async () => {
  const { project, seriesId } = await newSeries(db, "none", { windowDays: 1 });
  await live(seriesId, [[1, total(back(1), { requests: "3", hours: "0.1" }).rows]], "none");
  const shared = { project_id: project.id, project: project.name, grouping: "none", filter: "all" };
  const known = { days_after: 1, known_share: "1.000000000", days: 1 };
  expect(await view(db, "restatement_curve", project)).toEqual([
    { ...shared, metric: "hours", ...known },
    { ...shared, metric: "requests", ...known },
  ]);
});

test("days weigh by their final amounts, and those that never changed count", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await live(seriesId, [
    [1, listen("20")],
    [2, listen("100")],
  ]);
  await live(seriesId, [[1, listen("300")]]);
  expect(await curve(project)).toEqual([
    [1, 0.8, 2],
    [2, 1, 2],
    [3, 1, 2],
    [4, 1, 2],
  ]);
});

test("the day itself is known where it was read while it lasted", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await live(seriesId, [
    [0, listen("40")],
    [1, listen("100")],
    [2, listen("100")],
  ]);
  await live(seriesId, [
    [1, listen("90")],
    [2, listen("100")],
  ]);
  expect(await curve(project)).toEqual([
    [0, 0.4, 1],
    [1, 0.95, 2],
    [2, 1, 2],
  ]);
});

test("an amount that was too high was not known", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await live(seriesId, [
    [1, listen("110")],
    [2, listen("100")],
  ]);
  expect(await curve(project)).toEqual([
    [1, 0.9, 1],
    [2, 1, 1],
  ]);
});

test("a group that was wrong by more than all there is leaves nothing known, and not less", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await live(seriesId, [
    [1, listen("1000")],
    [2, listen("10")],
  ]);
  expect(await curve(project)).toContainEqual([1, 0, 1]);
});

test("what moved between groups was not known, though the sum was", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await live(seriesId, [
    [1, [rowOf("listen", "100")]],
    [2, [rowOf("listen", "75"), rowOf("speak", "25")]],
  ]);
  expect(await curve(project)).toContainEqual([1, 0.5, 1]);
});

test("a group that goes and comes back is known when it is there as it stayed", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await live(seriesId, [
    [1, listen("100")],
    [2, [rowOf("speak", "100")]],
    [3, listen("100")],
  ]);
  expect(await curve(project)).toEqual([
    [1, 1, 1],
    [2, 0, 1],
    [3, 1, 1],
    [4, 1, 1],
  ]);
});

test("two changes on one day count as the last of them", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await live(seriesId, [
    [1, listen("10")],
    [1, listen("100")],
  ]);
  expect(await curve(project)).toContainEqual([1, 1, 1]);
});

test("a change after the window makes the curve longer", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 1 });
  await live(seriesId, [
    [1, listen("50")],
    [6, listen("100")],
  ]);
  expect(await curve(project)).toEqual([
    [1, 0.5, 1],
    [2, 0.5, 1],
    [3, 0.5, 1],
    [4, 0.5, 1],
    [5, 0.5, 1],
    [6, 1, 1],
  ]);
});

test("each metric has a curve of its own, and one that was never used has none", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await live(seriesId, [
    [1, hours("0.125")],
    [2, hours("0.25")],
  ]);
  expect(await curve(project, "hours")).toEqual([
    [1, 0.5, 1],
    [2, 1, 1],
  ]);
  expect(await curve(project)).toEqual([]);
});

test("a day that was first read later than the day after says nothing", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await live(seriesId, [
    [3, listen("1")],
    [4, listen("2")],
  ]);
  expect(await curve(project)).toEqual([]);
});

test("a day that is still settling says nothing yet", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 30 });
  await live(seriesId, [
    [1, listen("1")],
    [2, listen("2")],
  ]);
  expect(await curve(project)).toEqual([]);
});
