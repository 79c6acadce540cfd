// The gauges that a scrape computes from the database.

import { expect, test } from "vitest";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { heartbeatWorker, lockJob, markScheduled } from "../../src/db/jobs/jobs.ts";
import { finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { markDue } from "../../src/db/usage/stored-series.ts";
import { health } from "../../src/facts/health.ts";
import { smallConfig } from "../cli/small-config.ts";
import { parse } from "../config/sample-config.ts";
import { newIntent, newRotation } from "../db/keys/written-ledger.ts";
import { newSeries } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { testMetrics } from "./test-metrics.ts";

const { db } = await testDatabase();

const JOB = { kind: "export", name: "nightly" } as const;
const CONFIG = parse(smallConfig("http://127.0.0.1:1"));
const DUE = { start: "2026-03-10", end: "2026-03-16" };

test("every gauge that is read from the database gets a sample, and no sample has an undeclared label", async () => {
  const { seriesId } = await newSeries(db, "none", { windowDays: 3 });
  await markDue(db, [seriesId], { first: DUE.start, oldest: DUE, through: DUE.end });
  await inTransaction(db, async (tx) => {
    await lockJob(tx, JOB);
    await markScheduled(tx, JOB, new Date("2026-03-17T02:15:00Z"));
  });
  const runId = "00000000-0000-4000-8000-000000000001";
  await startRun(db, { runId, kind: "export", job: JOB.name, trigger: "schedule" });
  await finishRun(db, runId, "ok", undefined);
  await heartbeatWorker(db, { workerId: runId, host: "node-1", pid: 41, version: "1.2.3" });
  await (await newRotation(db)).key(newIntent(), "active");

  // The scrape would fail if a sample had a label that its gauge does not declare.
  const { text } = await testMetrics({ readHealth: () => health(db, CONFIG) }).scrape();
  // Only the help of gauges that are read from the database ends like this.
  const gauges = [...text.matchAll(/^# HELP (\w+) .*The same for every replica\.$/gm)].map(([, name]) => name);
  expect(gauges.length).toBeGreaterThan(4);
  for (const gauge of gauges) expect(text).toMatch(new RegExp(`\n${gauge}[{ ]`));
  expect(text).toContain("\nusage_export_health_read 1");
});
