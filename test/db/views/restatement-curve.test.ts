// bi.restatement_curve: how much of a day's usage was known how soon, for histories that each test makes.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { SnapshotRow } from "../../../src/usage/rows.ts";
import type { Grouping, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, newSeries, rowOf, rowsOn, store, totalRow, view } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

const WINDOW = { windowDays: 4 };

/** The rows that are read `daysAfter` days after the day. */
type Reading = readonly [daysAfter: number, rows: readonly SnapshotRow[]];

/** Reads a day again and again as time goes by, until it is long over. */
async function readOverTime(
  seriesId: number,
  readings: readonly Reading[],
  grouping: Grouping = "endpoint",
): Promise<void> {
  let age = 0;
  for (const [daysAfter, rows] of readings) {
    await letDaysPass(seriesId, daysAfter - age);
    await store(db, seriesId, [rowsOn(back(daysAfter), rows)], { grouping, emptyGuard: "off", cliffGuard: "off" });
    age = daysAfter;
  }
  await letDaysPass(seriesId, 20);
}

/** Makes all that is stored of the series older by so many days. */
async function letDaysPass(seriesId: number, days: number): Promise<void> {
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

/** The curve of a metric: days after the day, known share, and the number of days from which it is computed. */
async function curve(project: Project, metric = "requests"): Promise<readonly (readonly [number, number, number])[]> {
  const rows = await view(db, "restatement_curve", project);
  return rows
    .filter((row) => row.metric === metric)
    .map((row) => [Number(row.days_after), Number(row.known_share), Number(row.days)] as const)
    .sort(([a], [b]) => a - b);
}

test("for a day that grew for three days, the curve has the share that was known after each day", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await readOverTime(seriesId, [
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

test("a row names its series and metric, and its numbers are exact", async () => {
  const { project, seriesId } = await newSeries(db, "none", { windowDays: 1 });
  await readOverTime(seriesId, [[1, [totalRow({ requests: "3", hours: "0.1" })]]], "none");
  const shared = { project_id: project.id, project: project.name, grouping: "none", filter: "all" };
  const known = { days_after: 1, known_share: "1.000000000", days: 1 };
  expect(await view(db, "restatement_curve", project)).toEqual([
    { ...shared, metric: "hours", ...known },
    { ...shared, metric: "requests", ...known },
  ]);
});

test("days are weighted by their final amounts, and days that never changed count, too", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await readOverTime(seriesId, [
    [1, listen("20")],
    [2, listen("100")],
  ]);
  await readOverTime(seriesId, [[1, listen("300")]]);
  expect(await curve(project)).toEqual([
    [1, 0.8, 2],
    [2, 1, 2],
    [3, 1, 2],
    [4, 1, 2],
  ]);
});

test("the curve has a point for the day itself if the day was read before it ended", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await readOverTime(seriesId, [
    [0, listen("40")],
    [1, listen("100")],
    [2, listen("100")],
  ]);
  await readOverTime(seriesId, [
    [1, listen("90")],
    [2, listen("100")],
  ]);
  expect(await curve(project)).toEqual([
    [0, 0.4, 1],
    [1, 0.95, 2],
    [2, 1, 2],
  ]);
});

test("an amount that was too high lowers the known share", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await readOverTime(seriesId, [
    [1, listen("110")],
    [2, listen("100")],
  ]);
  expect(await curve(project)).toEqual([
    [1, 0.9, 1],
    [2, 1, 1],
  ]);
});

test("if a group was wrong by more than the final amount, the known share is 0 and not negative", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await readOverTime(seriesId, [
    [1, listen("1000")],
    [2, listen("10")],
  ]);
  expect(await curve(project)).toContainEqual([1, 0, 1]);
});

test("usage that moved between groups later was not known, although its sum was", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await readOverTime(seriesId, [
    [1, [rowOf("listen", "100")]],
    [2, [rowOf("listen", "75"), rowOf("speak", "25")]],
  ]);
  expect(await curve(project)).toContainEqual([1, 0.5, 1]);
});

test("a group that disappears and comes back is known while it has its final amount", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await readOverTime(seriesId, [
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

test("of two changes on one day, the last one counts", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 2 });
  await readOverTime(seriesId, [
    [1, listen("10")],
    [1, listen("100")],
  ]);
  expect(await curve(project)).toContainEqual([1, 1, 1]);
});

test("a change after the window extends the curve", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 1 });
  await readOverTime(seriesId, [
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
  await readOverTime(seriesId, [
    [1, hours("0.125")],
    [2, hours("0.25")],
  ]);
  expect(await curve(project, "hours")).toEqual([
    [1, 0.5, 1],
    [2, 1, 1],
  ]);
  expect(await curve(project)).toEqual([]);
});

test("a day that was first read later than one day after it is left out", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", WINDOW);
  await readOverTime(seriesId, [
    [3, listen("1")],
    [4, listen("2")],
  ]);
  expect(await curve(project)).toEqual([]);
});

test("a day that is still settling is left out", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 30 });
  await readOverTime(seriesId, [
    [1, listen("1")],
    [2, listen("2")],
  ]);
  expect(await curve(project)).toEqual([]);
});
