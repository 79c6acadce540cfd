import { expect, test } from "vitest";
import { sliceStatuses } from "../../../src/db/usage/due-slices.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { type Filter, seriesKey } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { configured, newProject, newSeries, rowsOn, slice, store } from "../stored-usage.ts";

const { db } = await testDatabase();

const RANGE = { start: "2026-03-15", end: "2026-03-17" };
const LISTEN: Filter = { name: "narrow", features: {}, dimensions: { endpoint: "listen" } };

test("each slice of the range has its status, and days outside of the range are left out", async () => {
  const { series, seriesId } = await newSeries(db, "endpoint");
  const days = ["2026-03-14", "2026-03-15", "2026-03-16", "2026-03-18"];
  await store(
    db,
    seriesId,
    days.map((day) => slice(day, { listen: "1" })),
  );
  await store(db, seriesId, [slice("2026-03-16", {})]);
  await recordFailure(db, { seriesId, days: ["2026-03-17"], fetchNo: await nextFetchNo(db), reason: "no answer" });

  const known = await sliceStatuses(db, [series], RANGE);

  expect(known.get(seriesKey(series))).toEqual({
    "2026-03-15": "complete",
    "2026-03-16": "suspect",
    "2026-03-17": "failed",
  });
});

test("many series are distinguished by project, grouping and filter", async () => {
  const project = newProject();
  const days = new Map([
    [configured(project, "none"), "2026-03-14"],
    [configured(project, "model"), "2026-03-15"],
    [configured(project, "model", { filter: LISTEN }), "2026-03-16"],
    [configured(newProject(), "model"), "2026-03-17"],
  ]);
  const ids = await registerSeries(db, [...days.keys()]);
  for (const [{ series }, day] of days) await store(db, seriesIdOf(ids, series), [rowsOn(day, [])]);
  const all = [...days.keys()].map(({ series }) => series);

  const known = await sliceStatuses(db, all, RANGE);

  expect(all.map((series) => known.get(seriesKey(series)))).toEqual([
    undefined,
    { "2026-03-15": "complete" },
    { "2026-03-16": "complete" },
    { "2026-03-17": "complete" },
  ]);
});

test("reading the statuses of a series does not register it", async () => {
  const { series } = configured(newProject());
  expect(await sliceStatuses(db, [series], RANGE)).toEqual(new Map());
  expect([...(await registerSeries(db, [])).keys()]).not.toContain(seriesKey(series));
});

test("a series that is no longer configured still has its statuses", async () => {
  const { series, seriesId } = await newSeries(db, "endpoint");
  await store(db, seriesId, [slice("2026-03-16", { listen: "1" })]);
  await registerSeries(db, []);
  const known = await sliceStatuses(db, [series], RANGE);
  expect(known.get(seriesKey(series))).toEqual({ "2026-03-16": "complete" });
});
