// What is read of the database, as a scrape shows it.

import { expect, test } from "vitest";
import { markScheduled, registerJobs } from "../../src/db/jobs.ts";
import { readMonitorFigures } from "../../src/db/monitor-figures.ts";
import { finishRun, startRun } from "../../src/db/runs.ts";
import { markDue } from "../../src/db/series.ts";
import { inTransaction } from "../../src/db/transaction.ts";
import type { MonitoredJob } from "../../src/db/work-figures.ts";
import { heartbeatWorker } from "../../src/db/workers.ts";
import { NOTHING_DONE } from "../../src/usage/export.ts";
import { newSeries } from "../db/stored-usage.ts";
import { newIntent, newRotation } from "../db/written-ledger.ts";
import { testDatabase } from "../support/database.ts";
import { testMetrics } from "./test-metrics.ts";

const { db } = await testDatabase();

const JOB: MonitoredJob = { kind: "export", name: "nightly", nextAfter: (moment) => moment };
const DUE = { start: "2026-03-10", end: "2026-03-16" };

test("every gauge of the database gets a sample, and none has another label than it says", async () => {
  const { seriesId } = await newSeries(db);
  await markDue(db, [seriesId], { first: DUE.start, oldest: DUE, through: DUE.end });
  await registerJobs(db, [JOB]);
  await inTransaction(db, (tx) => markScheduled(tx, JOB, new Date("2026-03-17T02:15:00Z")));
  const runId = "00000000-0000-4000-8000-000000000001";
  await startRun(db, { runId, kind: "export", job: JOB.name, trigger: "schedule" });
  await finishRun(db, runId, "ok", NOTHING_DONE, undefined);
  await heartbeatWorker(db, { workerId: runId, host: "node-1", pid: 41, version: "1.2.3" });
  await (await newRotation(db)).key(newIntent(), "active");

  const { text } = await testMetrics({ readFigures: () => readMonitorFigures(db, [JOB]) }).scrape();
  const gauges = [...text.matchAll(/^# HELP (\w+) .*The same for every replica\.$/gm)].map(([, name]) => name);
  expect(gauges.length).toBeGreaterThan(10);
  for (const gauge of gauges) expect(text).toMatch(new RegExp(`\n${gauge}[{ ]`));
  expect(text).toContain("\nusage_export_database_up 1");
});
