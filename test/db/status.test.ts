import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { queryOn } from "../../src/db/connection/transaction.ts";
import { endProjects, finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { viewSamples } from "../../src/db/usage/due-slices.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { markDue } from "../../src/db/usage/stored-series.ts";
import { newestGaps } from "../../src/facts/coverage.ts";
import { health as readHealth } from "../../src/facts/health.ts";
import { readRuns } from "../../src/facts/runs.ts";
import { emptySlice } from "../../src/usage/answer-rows.ts";
import { NO_COUNTS } from "../../src/usage/counts.ts";
import { smallConfig } from "../cli/small-config.ts";
import { testDatabase } from "../support/database.ts";
import { newSeries, store, total } from "./stored-usage.ts";

const { db } = await testDatabase();

const CONFIG = parseConfig(JSON.stringify(smallConfig("http://127.0.0.1:1")), {
  source: "jobs.config.json",
  baseDir: "/srv",
});
test("an empty database has no slices, gaps, workers, rotations or runs", async () => {
  expect(await readHealth(db, CONFIG)).toMatchObject({
    slices: { complete: 0, suspect: 0, failed: 0, missing: 0 },
    ...{ causes: [], workers: [], rotations: [], jobs: [{ lastRun: undefined, failedRun: undefined }] },
  });
  expect(await readRuns(db, 10)).toEqual([]);
  expect((await viewSamples(db)).slice(0, 3)).toEqual([
    { view: "usage_total", text: null },
    { view: "cost_total", text: null },
    { view: "coverage", text: "0 of 0 slices complete, 0 gaps" },
  ]);
});

test("slices are counted by status, and gaps listed from the newest", async () => {
  const { project, seriesId } = await newSeries(db, "none");
  const grouping = { grouping: "none" } as const;
  const due = { start: "2026-03-10", end: "2026-03-16" };
  await store(
    db,
    seriesId,
    [total("2026-03-12", { requests: "1" }), total("2026-03-14", { requests: "5", hours: "2" })],
    grouping,
  );
  await store(db, seriesId, [emptySlice("2026-03-12")], grouping);
  await recordFailure(db, { seriesId, days: ["2026-03-15"], fetchNo: await nextFetchNo(db), reason: "down" });
  await markDue(db, [seriesId], { first: due.start, oldest: due, through: due.end });

  const { slices } = await readHealth(db, CONFIG);
  const { gaps } = await newestGaps(queryOn(db), [project.name]);
  expect(slices).toEqual({ complete: 1, suspect: 1, failed: 1, missing: 4 });
  const gap = { series: [{ project: project.name, source: "usage", grouping: "none", filter: "all" }] };
  expect(gaps).toEqual([
    { ...gap, status: "missing", from: "2026-03-16", to: "2026-03-16", error: null },
    { ...gap, status: "failed", from: "2026-03-15", to: "2026-03-15", error: "down" },
    { ...gap, status: "missing", from: "2026-03-13", to: "2026-03-13", error: null },
    { ...gap, status: "missing", from: "2026-03-10", to: "2026-03-11", error: null },
  ]);
  expect(await viewSamples(db)).toMatchObject([
    { text: "2026-03-14: 5 requests, 2 hours" },
    {},
    { text: "1 of 7 slices complete, 4 gaps" },
    ...[{}, {}],
  ]);
});

test("the newest runs of all jobs are listed with the counts of their slices, the newest first", async () => {
  const counts = { ...NO_COUNTS, planned: 5, complete: 2, suspect: 1, failed: 1, stale: 1, rowsChanged: 7 };
  for (const error of ["first", "second", "third"]) {
    const runId = randomUUID();
    const run = { runId, kind: "export", job: "weekly", trigger: "manual" } as const;
    await startRun(db, run, [{ projectId: "p1", planned: 5 }]);
    await endProjects(db, [{ runId, projectId: "p1", counts }]);
    await finishRun(db, runId, "failed", error);
  }
  const run = { job: "weekly", kind: "export", trigger: "manual", status: "failed" };
  const done = { planned: 5, complete: 2, suspect: 1, failed: 1, stale: 1, rowsChanged: 7 };
  const runs = await readRuns(db, 2);
  expect(runs).toMatchObject([
    { ...run, ...done, error: "third" },
    { ...run, ...done, error: "second" },
  ]);
});
