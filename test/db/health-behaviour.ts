// Tests of the health state that is read from a database, and of the metrics computed from it. Run on each kind of database.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { type Config, parseConfig } from "../../src/config/config.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { heartbeatWorker, markWorkerStopped } from "../../src/db/jobs/jobs.ts";
import { finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { recordEvent } from "../../src/db/keys/keystore.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { markDue, registerSeries, seriesIdOf } from "../../src/db/usage/series.ts";
import { health } from "../../src/facts/health.ts";
import { type MetricSample, metricSamples } from "../../src/show/prometheus.ts";
import type { RunTrigger } from "../../src/usage/counts.ts";
import { newIntent, newRotation } from "./keys/written-ledger.ts";
import { configured, daysBack, newProject, slice, store } from "./stored-usage.ts";

/**
 * The past of a series. Every number is a count of days before today: the first and the last due day, the days that were read, those
 * whose last reading failed, and those whose last reading was empty.
 */
type Past = {
  readonly due?: readonly [number, number];
  readonly read?: readonly number[];
  readonly failed?: readonly number[];
  readonly emptied?: readonly number[];
};

const PASTS: Readonly<Record<string, Past>> = {
  "never planned": {},
  "planned and never read": { due: [3, 1] },
  "all read": { due: [4, 1], read: [4, 3, 2, 1] },
  "the first missing": { due: [4, 1], read: [3, 2, 1] },
  "one within missing": { due: [4, 1], read: [4, 2, 1] },
  "two stretches missing": { due: [7, 1], read: [7, 5, 3, 2] },
  "the last missing": { due: [4, 1], read: [4, 3] },
  "one failed that never had any": { due: [4, 1], read: [4, 2, 1], failed: [3] },
  "one failed that had some": { due: [4, 1], read: [4, 3, 2, 1], failed: [3] },
  "the last failed, and one before missing": { due: [4, 1], read: [4, 2], failed: [1] },
  "one suspect": { due: [4, 1], read: [4, 3, 2, 1], emptied: [2] },
  "older days read by hand": { due: [3, 1], read: [9, 8, 3, 2, 1], failed: [8] },
};

export function testHealth(db: Database): void {
  test("the health of a project agrees with the views, whatever its past", async () => {
    const pasts = Object.entries(PASTS).map(([name, past]) => {
      const project = { ...newProject(), name };
      return { past, one: configured(project, "endpoint", { windowDays: 2 }) };
    });
    const ids = await registerSeries(
      db,
      pasts.map(({ one }) => one),
    );
    for (const { past, one } of pasts) await live(seriesIdOf(ids, one.series), past);

    const shown = new Map<string, Record<string, number>>();
    for (const { gauge, labels, value } of await samplesOf()) {
      const { project = "", status = gauge } = labels;
      if (project in PASTS) shown.set(project, { ...shown.get(project), [status]: value });
    }
    expect(Object.fromEntries(shown)).toEqual(await viewed());
    expect(shown.get("two stretches missing")).toMatchObject({ missing: 3, failed: 0, suspect: 0 });
  });

  test("the slices are counted as in bi.coverage", async () => {
    const { slices } = await health(db, configOf());
    const { rows: counts } = await sql<{ status: string; slices: number }>`
      select status, count(*)::integer as slices from bi.coverage where status <> 'undated' group by status
    `.execute(db);
    expect(slices).toEqual(Object.fromEntries(counts.map((count) => [count.status, count.slices])));
  });

  test("the metrics leave out series that are no longer configured", async () => {
    const project = newProject();
    const ids = await registerSeries(db, [configured(project)]);
    await live([...ids.values()].at(-1) ?? 0, { due: [3, 1], failed: [2] });
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
      update usage_export.api_key set requested_at = now() - interval '40 days', put_back_at = now() - interval '1 day'
      where rotation = ${rotation.job.name}
    `.execute(db);
    expect((await rotationMetrics(rotation.job.name)).api_key_age_seconds).toBeCloseTo(86_400, -2);
  });

  test.each([
    ["before the key came into use", "2 days", "1 day", 0],
    ["of the key in use", "1 day", "2 days", 1],
    ["of more than a week ago", "8 days", "9 days", 0],
  ])("a condition of the rotation is a fallback %s", async (_name, eventAgo, activeAgo, fallback) => {
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

  async function live(seriesId: number, { due, read = [], failed = [], emptied = [] }: Past): Promise<void> {
    const back = await daysBack(db);
    const answers = (days: readonly number[], requests: Readonly<Record<string, string>>) =>
      days.map((day) => slice(back(day), requests));
    if (due) {
      const [start, end] = [back(due[0]), back(due[1])];
      await markDue(db, [seriesId], { first: start, oldest: { start, end }, through: end });
    }
    if (read.length > 0) await store(db, seriesId, answers(read, { listen: "1" }));
    if (emptied.length > 0) await store(db, seriesId, answers(emptied, {}));
    const fetchNo = await nextFetchNo(db);
    if (failed.length > 0) await recordFailure(db, { seriesId, days: failed.map(back), fetchNo, reason: "down" });
  }

  /** The same numbers from the views, by project. */
  async function viewed() {
    const { rows } = await sql<{ project: string; counts: Readonly<Record<string, number>> }>`
      select s.project, jsonb_strip_nulls(jsonb_build_object(
        'missing', (select count(*) from bi.coverage c where c.project_id = s.project_id and c.status = 'missing'),
        'failed', (select count(*) from bi.coverage c where c.project_id = s.project_id and c.status = 'failed'),
        'suspect', (select count(*) from bi.coverage c where c.project_id = s.project_id and c.status = 'suspect'),
        'newest_complete_day_timestamp_seconds', (
          select extract(epoch from f.fresh_through::timestamp at time zone 'UTC')::bigint from bi.freshness f
          where f.project_id = s.project_id
        )
      )) as counts
      from usage_export.series s where s.project = any(${Object.keys(PASTS)})
    `.execute(db);
    return Object.fromEntries(rows.map(({ project, counts }) => [project, counts]));
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
