// The answer to a scrape. The alert rules may name only metrics that it has: a rule on any other would never fire. With promtool,
// alerts.test.yml tests that each rule fires.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { heartbeatWorker, lockJob, markScheduled } from "../../src/db/jobs/jobs.ts";
import { finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { countSlices } from "../../src/facts/coverage.ts";
import { health } from "../../src/facts/health.ts";
import { smallConfig } from "../cli/small-config.ts";
import { parse } from "../config/sample-config.ts";
import { newIntent, newRotation } from "../db/keys/written-ledger.ts";
import { newSeries, setDue } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { healthState, makeJob, makeProject, makeRotation, NOW } from "./sample-health-state.ts";
import { testMetrics } from "./test-metrics.ts";

const MISSING = makeProject({ missing: 2 });
const MISSING_LINE = 'usage_export_incomplete_slices{project="production",source="usage",status="missing"} 2';

test("attempts of calls are counted by their result", async () => {
  const metrics = testMetrics();
  metrics.attemptEnded({ operation: "breakdown", result: "unavailable", seconds: 0.3 });
  metrics.attemptEnded({ operation: "breakdown", result: "ok", seconds: 70 });
  expect(await metrics.samples()).toEqual(
    expect.arrayContaining([
      'usage_export_service_request_duration_seconds_bucket{le="0.25",operation="breakdown",result="unavailable"} 0',
      'usage_export_service_request_duration_seconds_bucket{le="0.5",operation="breakdown",result="unavailable"} 1',
      'usage_export_service_request_duration_seconds_count{operation="breakdown",result="ok"} 1',
    ]),
  );
});

test("the first scrape has the facts about this process and the metrics of Node", async () => {
  const metrics = testMetrics({ ready: () => false });
  expect(await metrics.samples()).toEqual(
    expect.arrayContaining([
      `usage_export_build_info{version="1.2.3",node_version="${process.version}",schema="0006_create_notice"} 1`,
      "usage_export_ready 0",
    ]),
  );
  const { body: text, contentType } = await metrics.scrape();
  expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
  for (const name of ["process_resident_memory_bytes", "nodejs_eventloop_lag_seconds", "nodejs_active_handles"]) {
    expect(text).toContain(`\n${name}`);
  }
  expect(text).not.toMatch(/^nodejs_active_\w+_total/m);
});

test("each scrape reads the health state anew", async () => {
  const projects = [MISSING, { ...MISSING, source: "billing" as const, missing: 5 }];
  const metrics = testMetrics({ readHealth: async () => healthState({ projects }) });
  const billing = MISSING_LINE.replace('usage"', 'billing"').replace(/2$/, "5");
  expect(await metrics.samples()).toEqual(expect.arrayContaining([MISSING_LINE, billing]));
  projects.pop();
  expect(await metrics.samples()).not.toContain(billing);
});

test("each known number of the health state has a sample, whatever its project is called", async () => {
  const state = healthState({
    projects: [makeProject({ failed: 1, suspect: 3 }), makeProject({ project: 'new "b"\\\n', freshThrough: null })],
    jobs: [makeJob({ lastSuccess: 1_700_000_000 }), makeJob({ kind: "rotation", job: "keys", lastSuccess: null })],
    rotations: [makeRotation({ ageSeconds: 86_400.5 })],
    workers: [],
  });
  const shown = await testMetrics({ readHealth: async () => state }).samples();
  const ofProject = 'project="production",source="usage"';
  const slices = (status: string) => `usage_export_incomplete_slices{${ofProject},status="${status}"}`;
  expect(shown).toEqual(
    expect.arrayContaining([
      'usage_export_condition{name="worker",subject="",severity="critical"} 1',
      `usage_export_newest_complete_day_timestamp_seconds{${ofProject}} ${Date.UTC(2026, 2, 9) / 1000}`,
      ...[`${slices("missing")} 0`, `${slices("failed")} 1`, `${slices("suspect")} 3`],
      'usage_export_job_last_success_timestamp_seconds{kind="export",job_name="nightly"} 1700000000',
      'usage_export_api_key_age_seconds{rotation="exporter"} 86400.5',
    ]),
  );
  expect(shown.join()).toContain('slices{project="new \\"b\\"\\\\\\n"');
  expect(shown.filter((one) => one.startsWith("usage_export_condition{"))).toHaveLength(1);
  expect(shown).not.toContainEqual(expect.stringMatching(/^usage_export_(newest.*"new |job_last.*"keys")/));
});

test("without the database a scrape has all other metrics", async () => {
  let isDown = true;
  const metrics = testMetrics({
    readHealth: async () => {
      if (isDown) throw new Error("connect ECONNREFUSED 10.0.0.1:5432");
      return healthState({ projects: [MISSING] });
    },
  });
  await metrics.samples();
  const samples = await metrics.samples();
  expect(samples).toEqual(expect.arrayContaining(["usage_export_health_read 0", "usage_export_ready 1"]));
  expect(samples.join()).not.toMatch(/incomplete_slices|ECONNREFUSED/);
  // The reason is logged once per outage.
  expect(metrics.logLines).toEqual([expect.stringContaining("ECONNREFUSED")]);
  isDown = false;
  expect(await metrics.samples()).toEqual(expect.arrayContaining([MISSING_LINE, "usage_export_health_read 1"]));
  isDown = true;
  await metrics.samples();
  expect(metrics.logLines).toHaveLength(2);
});

test("a scrape of 5,000 projects, jobs and rotations has the worst 200 of each metric in less than 2 MB", async () => {
  const many = <T>(make: (i: number) => T) => Array.from({ length: 5_000 }, (_, i) => make(i));
  const isBad = (i: number) => i === 4_321;
  const projects = [
    ...many((i) => makeProject({ project: `p-${i}`, failed: isBad(i) ? 3 : 0, missing: i === 17 ? 500 : 0 })),
    makeProject({ project: "doubtful", suspect: 2, freshThrough: "2026-03-10" }),
    makeProject({ project: "stale", freshThrough: "2020-01-01" }),
    makeProject({ project: "retired", series: 0, suspect: 9 }),
  ];
  const state = healthState({
    ...{ projects, slices: countSlices(projects) },
    jobs: many((i) => makeJob({ job: `job-${i}`, overdueSince: NOW })),
    rotations: many((i) => makeRotation({ rotation: `key-${i}`, failedAttempts: isBad(i) ? 5 : 0 })),
  });
  const { body: text } = await testMetrics({ readHealth: async () => state }).scrape();
  expect(text.length).toBeLessThan(2_000_000);
  for (const line of [
    'condition{name="key attention",subject="key-4321",severity="critical"} 1',
    'incomplete_slices{project="p-17",source="usage",status="missing"} 500',
    'incomplete_slices{project="p-4321",source="usage",status="failed"} 3',
    'incomplete_slices{project="doubtful",source="usage",status="suspect"} 2',
    `newest_complete_day_timestamp_seconds{project="stale",source="usage"} ${Date.UTC(2020, 0, 1) / 1000}`,
  ])
    expect(text).toContain(`\nusage_export_${line}\n`);
  expect(text).not.toContain("retired");
  expect(text.match(/^usage_export_condition\{/gm)).toHaveLength(200);
  expect(text.match(/^usage_export_newest_complete_day_timestamp_seconds\{/gm)).toHaveLength(200);
});

const { db } = await testDatabase();

const JOB = { kind: "export", name: "nightly" } as const;
const CONFIG = parse(smallConfig("http://127.0.0.1:1"));
const DUE = { start: "2026-03-10", end: "2026-03-16" };

test("every gauge that is read from the database gets a sample", async () => {
  const { seriesId } = await newSeries(db, "none", { windowDays: 3 });
  await setDue(db, [seriesId], DUE.start, DUE.end);
  await inTransaction(db, async (tx) => {
    await lockJob(tx, JOB);
    await markScheduled(tx, JOB, new Date("2026-03-17T02:15:00Z"));
  });
  const runId = "00000000-0000-4000-8000-000000000001";
  await startRun(db, { runId, kind: "export", job: JOB.name, trigger: "schedule" });
  await finishRun(db, runId, "ok", undefined);
  await heartbeatWorker(db, { workerId: runId, host: "node-1", pid: 41, version: "1.2.3" });
  await (await newRotation(db)).recordKey(newIntent(), "active");

  // The scrape would fail if a sample had a label that its gauge does not declare.
  const { body: text } = await testMetrics({ readHealth: () => health(db, CONFIG) }).scrape();
  // Only the help of gauges that are read from the database ends like this.
  const gauges = [...text.matchAll(/^# HELP (\w+) .*The same for every replica\.$/gm)].map(([, name]) => name);
  expect(gauges.length).toBeGreaterThan(4);
  for (const gauge of gauges) expect(text).toMatch(new RegExp(`\n${gauge}[{ ]`));
  expect(text).toContain("\nusage_export_health_read 1");
});

const FOLDER = path.join(import.meta.dirname, "../../monitor");
const rules = await readFile(path.join(FOLDER, "alerts.yml"), "utf8");
const ruleTests = await readFile(path.join(FOLDER, "alerts.test.yml"), "utf8");

const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name);
const expressions = [...rules.matchAll(/expr: (?:>-\n((?: {10}.*\n)+)|(.*))/g)].map(([, long, short]) => long ?? short);

test("every metric that an alert rule uses is in the answer to a scrape", async () => {
  const { body: text } = await testMetrics().scrape();
  const exposed = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
  const used = expressions.flatMap((expression) => expression?.match(/\busage_export_\w+/g) ?? []);
  expect(expressions).toHaveLength(alerts.length);
  expect(used.length).toBeGreaterThanOrEqual(alerts.length);
  expect(exposed).toEqual(expect.arrayContaining(used));
});

test.each(alerts)("alerts.test.yml has a test of %s", (alert) => {
  expect(ruleTests).toContain(alert);
});
