// Tests of the health state that is read from a database, and of the metrics computed from it. Run on each kind of database.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { type Config, parseConfig } from "../../src/config/config.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { heartbeatWorker, markWorkerStopped } from "../../src/db/jobs/jobs.ts";
import { finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { recordEvent } from "../../src/db/keys/sealed-keys.ts";
import { markDue, registerSeries } from "../../src/db/usage/stored-series.ts";
import { health } from "../../src/facts/health.ts";
import { type MetricSample, metricSamples } from "../../src/show/prometheus.ts";
import type { RunTrigger } from "../../src/usage/counts.ts";
import { newIntent, newRotation } from "./keys/written-ledger.ts";
import { configured, newProject } from "./stored-usage.ts";

export function testHealth(db: Database): void {
  test("the metrics leave out series that are no longer configured", async () => {
    const project = newProject();
    const ids = await registerSeries(db, [configured(project)]);
    const [first, last] = ["2026-03-16", "2026-03-18"];
    await markDue(db, [...ids.values()], { first, oldest: { start: first, end: last }, through: last });
    await registerSeries(db, []);
    const metrics = await samplesOf();
    expect(metrics.filter(({ labels }) => labels.project === project.name)).toEqual([]);
  });

  test("the metric of a job is the end of the newest run that stored everything, without backfills", async () => {
    const name = `job-${randomUUID()}`;
    expect(await jobMetrics(name)).toEqual({});
    const runs: [RunTrigger, Parameters<typeof finishRun>[2]][] = [
      ["schedule", "failed"],
      ["schedule", "ok"],
      ["schedule", "failed"],
      ["catchup", "failed"],
      ["backfill", "ok"],
    ];
    for (const [trigger, status] of runs) await run(name, trigger, status);
    const { rows } = await sql<{ at: number }>`
      select extract(epoch from max(finished_at))::double precision as at from bi.runs
      where job = ${name} and status = 'ok' and trigger <> 'backfill'
    `.execute(db);
    expect(Math.round((await jobMetrics(name)).job_last_success_timestamp_seconds ?? 0)).toBe(
      Math.round(rows[0]?.at ?? -1),
    );
  });

  test("the age of the key in use is a metric of its rotation", async () => {
    const rotation = await newRotation(db);
    await rotation.key(newIntent(), "active");
    await sql`
      update usage_export.api_key set requested_at = now() - interval '3 days'
      where rotation = ${rotation.job.name} and state = 'active'
    `.execute(db);
    expect((await rotationMetrics(rotation.job.name)).api_key_age_seconds).toBeCloseTo(3 * 86_400, -2);
  });

  test("the age of a restored key counts from its restoration", async () => {
    const rotation = await newRotation(db);
    await rotation.key(newIntent(), "active");
    await sql`
      update usage_export.api_key set requested_at = now() - interval '40 days', rollback_at = now() - interval '1 day'
      where rotation = ${rotation.job.name}
    `.execute(db);
    expect((await rotationMetrics(rotation.job.name)).api_key_age_seconds).toBeCloseTo(86_400, -2);
  });

  test.each([
    ["before the key came into use is no condition", "2 days", "1 day", 0],
    ["of the key in use is a condition", "1 day", "2 days", 1],
    ["of more than a week ago is no condition", "8 days", "9 days", 0],
  ])("a fallback %s", async (_name, eventAgo, activeAgo, fallback) => {
    const rotation = await newRotation(db);
    const { name } = rotation.job;
    await rotation.key(newIntent(), "active");
    await recordEvent(db, { rotation: name, intentId: undefined, event: "fallback", actor: "me", reason: "refused" });
    await sql`update usage_export.key_event set at = now() - ${eventAgo}::interval where rotation = ${name}`.execute(
      db,
    );
    await sql`
      update usage_export.api_key set active_since = now() - ${activeAgo}::interval where rotation = ${name}
    `.execute(db);
    expect((await conditionsOfRotation(name)).filter((one) => one === "key fallback")).toHaveLength(fallback);
  });

  test.each([
    [4, "key attempts"],
    [5, "key attention"],
  ])("after %i failed attempts a rotation has the condition %s", async (failures, condition) => {
    const { job } = await newRotation(db);
    await sql`update usage_export.rotation set failed_attempts = ${failures} where name = ${job.name}`.execute(db);
    expect(await conditionsOfRotation(job.name)).toEqual([condition]);
  });

  test("workers are counted while they have a recent heartbeat", async () => {
    const seen: readonly [ago: string, stopped: boolean][] = [
      ["0 seconds", false],
      ["100 seconds", false],
      ["130 seconds", false],
      // The clock was set back.
      ["-1 hour", false],
      ["1 second", true],
    ];
    for (const [ago, stopped] of seen) {
      const worker = { workerId: randomUUID(), host: "node-1", pid: 41, version: "1.2.3" };
      await heartbeatWorker(db, worker);
      if (stopped) await markWorkerStopped(db, worker.workerId);
      await sql`
        update usage_export.worker set last_seen_at = now() - ${ago}::interval where worker_id = ${worker.workerId}
      `.execute(db);
    }
    const liveCount = async () => (await health(db, configOf())).workers.filter(({ state }) => state === "live").length;
    expect(await liveCount()).toBe(2);
    await sql`delete from usage_export.worker`.execute(db);
    expect(await liveCount()).toBe(0);
  });

  async function samplesOf(config = configOf()): Promise<readonly MetricSample[]> {
    return metricSamples(await health(db, config));
  }

  async function jobMetrics(name: string) {
    return valuesOf(
      (await samplesOf(configOf({ export: name }))).filter(
        ({ labels }) => labels.job_name === name && labels.kind === "export",
      ),
    );
  }

  async function rotationMetrics(rotation: string) {
    return valuesOf((await samplesOf(configOf({ rotation }))).filter(({ labels }) => labels.rotation === rotation));
  }

  /** Their names. */
  async function conditionsOfRotation(rotation: string): Promise<readonly string[]> {
    const { conditions } = await health(db, configOf({ rotation }));
    return conditions.flatMap(({ name, subject }) => (subject === rotation ? name : []));
  }

  async function run(job: string, trigger: RunTrigger, status: Parameters<typeof finishRun>[2]): Promise<void> {
    const runId = randomUUID();
    await startRun(db, { runId, kind: "export", job, trigger });
    await finishRun(db, runId, status, undefined);
  }
}

/** A configuration with an export or a rotation of that name, scheduled for every minute. */
function configOf({ export: name, rotation }: { readonly export?: string; readonly rotation?: string } = {}): Config {
  const schedule = "* * * * *";
  const jobs = {
    ...(name && { exports: [{ name, schedule, projects: ["production"], groupings: ["none"] }] }),
    ...(rotation && {
      rotations: [{ name: rotation, schedule, project: "production", comment: "exporter", scopes: ["member"] }],
    }),
  };
  const projects = [{ id: "p", name: "production", key: { env: "KEY" } }];
  const text = JSON.stringify({ service: { baseUrl: "http://127.0.0.1:1" }, projects, ...jobs });
  return parseConfig(text, { source: "jobs.config.json", baseDir: "/srv" });
}

/** The values by gauge, or by state if they have the label `state`. */
function valuesOf(metrics: readonly MetricSample[]): Readonly<Record<string, number>> {
  return Object.fromEntries(metrics.map(({ gauge, labels, value }) => [labels.state ?? gauge, value]));
}
