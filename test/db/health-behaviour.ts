// Tests of the health state as it is read from a database, and of the metrics computed from it. Run on each kind of database.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { type Config, parseConfig } from "../../src/config/config.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { readAtOneMoment } from "../../src/db/connection/transaction.ts";
import { heartbeatWorker, markWorkerStopped } from "../../src/db/jobs/jobs.ts";
import { finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { recordEvent } from "../../src/db/keys/ledger.ts";
import { recordListFailure } from "../../src/db/projects.ts";
import { failureCauses } from "../../src/db/usage/failures.ts";
import { health } from "../../src/facts/health.ts";
import type { RunTrigger } from "../../src/usage/counts.ts";
import { testMetrics } from "../health/test-metrics.ts";
import { newIntent, newRotation } from "./keys/written-ledger.ts";
import { configured, failOn, newProject, register, setDue } from "./stored-usage.ts";

export function testHealth(db: Database): void {
  test("metrics and the causes of failures leave out projects and series that are no longer configured", async () => {
    const [gone, kept] = [newProject(), newProject()];
    const keptSeries = configured(kept, "none");
    const [keptId, ...retired] = await register(db, keptSeries, configured(kept), configured(gone));
    await setDue(db, [keptId, ...retired], "2026-03-16", "2026-03-18");
    for (const seriesId of retired) await failOn(db, seriesId, ["2026-03-17"], { reason: "of a retired series" });
    await register(db, keptSeries);
    const samples = await testMetrics({ readHealth: () => health(db, configOf()) }).samples();
    const shown = (name: string) => samples.filter((line) => line.includes(`project="${name}"`));
    expect(shown(gone.name)).toEqual([]);
    const slices = shown(kept.name).flatMap((line) => /status="(\w+"} \d+)$/.exec(line)?.slice(1) ?? []);
    expect(slices).toEqual(['missing"} 3', 'failed"} 0', 'suspect"} 0']);
    const causes = await readAtOneMoment(db, failureCauses);
    expect(causes.map(({ error }) => error)).not.toContain("of a retired series");
  });

  test("a job's last success is the end of its newest run that stored everything, not counting backfills", async () => {
    const name = `job-${randomUUID()}`;
    expect(await lastSuccess(name)).toBeNull();
    for (const trigger of ["schedule", "catchup", "backfill"] as const) {
      await storeRun(name, trigger, "failed");
      if (trigger !== "catchup") await storeRun(name, trigger, "ok");
    }
    const ended = sql`finished_at = to_timestamp(7200)`;
    await sql`update usage_export.run set ${ended} where job = ${name} and trigger = 'schedule'`.execute(db);
    expect(await lastSuccess(name)).toBe(7200);
  });

  test("a key's age counts from when it was requested, or from when a rollback put it back in use", async () => {
    const rotation = await newRotation(db);
    const { name } = rotation.job;
    await rotation.recordKey(newIntent(), "active");
    const age = async () => {
      const { rotations } = await health(db, configOf({ rotation: name }));
      return rotations.find((one) => one.rotation === name)?.ageSeconds;
    };
    const requestEarlier = sql`update usage_export.api_key set requested_at = now() - interval '3 days' where rotation = ${name}`;
    await requestEarlier.execute(db);
    expect(await age()).toBeCloseTo(3 * 86_400, -2);
    const rollBack = sql`update usage_export.api_key set rollback_at = now() - interval '1 day' where rotation = ${name}`;
    await rollBack.execute(db);
    expect(await age()).toBeCloseTo(86_400, -2);
  });

  test.each([
    ["before the key came into use is no condition", "2 days", "1 day", 0],
    ["of the key in use is a condition", "1 day", "2 days", 1],
    ["of more than a week ago is no condition", "8 days", "9 days", 0],
  ])("a fallback to another key %s", async (_name, eventAgo, activeAgo, count) => {
    const rotation = await newRotation(db);
    const { name } = rotation.job;
    await rotation.recordKey(newIntent(), "active");
    await recordEvent(db, { rotation: name, intentId: undefined, event: "fallback", actor: "me", reason: "refused" });
    const ageEvents = sql`update usage_export.key_event set at = now() - ${eventAgo}::interval where rotation = ${name}`;
    await ageEvents.execute(db);
    await sql`
      update usage_export.api_key set active_since = now() - ${activeAgo}::interval where rotation = ${name}
    `.execute(db);
    expect((await conditionNames(name)).filter((one) => one === "key fallback")).toHaveLength(count);
  });

  test("a worker is live if it did not stop and its heartbeat is less than two minutes old", async () => {
    // A heartbeat an hour ahead is from before the clock was set back, and is not recent.
    for (const [ago, stopped] of [["0 seconds"], ["100 seconds"], ["130 seconds"], ["-1 hour"], ["1 second", true]]) {
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

  test("a list of projects is shown as long as the configuration has an entry for it", async () => {
    for (const keyName of ["env KEY", "env REMOVED"]) await recordListFailure(db, keyName, "no");
    const projects = [{ discover: true, key: { env: "KEY" } }];
    const text = JSON.stringify({ service: { baseUrl: "http://127.0.0.1:1" }, projects });
    const { lists } = await health(db, parseConfig(text, "jobs.config.json", "/srv"));
    expect(lists.map((list) => list.keyName)).toEqual(["env KEY"]);
  });

  // The health state and bi.coverage are computed by different queries. The data has series whose due_from is after due_through, as after a
  // clock was set back.
  test("counts and freshness are those of bi.coverage, whatever is stored", async () => {
    const series = Array.from({ length: 150 }, (_, i) =>
      configured(newProject(), "endpoint", { windowDays: 1 + (i % 4) }),
    );
    const ids: readonly number[] = await register(db, ...series);
    await sql`select setseed(0.42)`.execute(db);
    await sql`
      update usage_export.series set
        due_from = case when random() < 0.85 then current_date - (1 + random() * 12)::integer end,
        due_through = current_date - (random() * 4)::integer,
        next_due_at = case when random() < 0.8 then now() + (random() - 0.5) * interval '2 days' end,
        window_days = case when random() < 0.7 then window_days end,
        undated_since = case when random() < 0.1 then now() end,
        retired_at = case when random() < 0.15 then now() end,
        superseded_at = case when random() < 0.1 then now() end
      where series_id = any(${ids}::integer[])
    `.execute(db);
    await sql`
      insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at, content_hash, rows, error)
      select series_id, day, status, case when fetched then 1 else 0 end, case when fetched then now() - interval '3 hours' end,
        case when fetched and closed then now() end, case when fetched then '' end, 1,
        case when status <> 'complete' and error then 'down' end
      from (
        select series_id, day::date, fetched or status <> 'failed' as fetched, closed, error, status
        from (
          select s.series_id, day, random() < 0.8 as fetched, random() < 0.7 as closed, random() < 0.8 as error,
            (array['complete', 'complete', 'complete', 'failed', 'suspect'])[1 + floor(random() * 5)::integer] as status
          from unnest(${ids}::integer[]) as s (series_id)
          cross join generate_series(current_date - 15, current_date, interval '1 day') as day
          where random() < 0.75 and series_id % 5 > 0
        ) drawn
      ) made
      union all
      -- Every fifth series lacks nothing.
      select series_id, day::date, 'complete', 1, now(), now(), '', 1, null
      from usage_export.due_series cross join generate_series(due_from, due_until, interval '1 day') as day
      where series_id = any(${ids}::integer[]) and series_id % 5 = 0
      union all
      -- For half of these, today was read as well, which is never due.
      select series_id, current_date, 'complete', 1, now(), null, '', 1, null
      from unnest(${ids}::integer[]) as s (series_id) where series_id % 10 = 0
    `.execute(db);
    // Makes sure that the comparison below covers the shortcut for series without gaps (is_whole).
    const { rows: whole } = await sql<{ whole: boolean }>`
      select distinct is_whole as whole from usage_export.series_days
      where series_id = any(${ids}::integer[]) and series_id % 5 = 0 and due_from <= due_until
    `.execute(db);
    expect(whole).toEqual([{ whole: true }]);
    const state = await health(db, configOf());
    const { rows: counts } = await sql<{ status: string; slices: number }>`
      select status, count(*)::integer as slices from bi.coverage where status <> 'undated' group by status
    `.execute(db);
    expect(state.slices).toEqual(Object.fromEntries(counts.map(({ status, slices }) => [status, slices])));
    const { rows: fresh } = await sql<{ project: string; day: string }>`
      select f.project, coalesce((
        select min(usage_date) - 1 from bi.coverage c
        where c.project = f.project and usage_date between f.due_from and f.due_through and (c.fetched_at is null or status = 'missing')
      ), f.due_through) as day
      from bi.freshness f where f.due_from is not null
    `.execute(db);
    const freshThrough = new Map(state.projects.map((one) => [one.project, one.freshThrough]));
    expect(fresh.map(({ project }) => ({ project, day: freshThrough.get(project) }))).toEqual(fresh);
  });

  async function lastSuccess(name: string) {
    const { jobs } = await health(db, configOf({ export: name }));
    return jobs.find(({ kind, job }) => kind === "export" && job === name)?.lastSuccess;
  }

  /** The names of the conditions of this rotation. */
  async function conditionNames(rotation: string): Promise<readonly string[]> {
    const { conditions } = await health(db, configOf({ rotation }));
    return conditions.flatMap(({ name, subject }) => (subject === rotation ? name : []));
  }

  async function storeRun(job: string, trigger: RunTrigger, status: Parameters<typeof finishRun>[2]): Promise<void> {
    const runId = randomUUID();
    await startRun(db, { runId, kind: "export", job, trigger });
    await finishRun(db, runId, status, undefined);
  }
}

/** A configuration with an export or a rotation of the given name, scheduled for every minute. */
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
  return parseConfig(text, "jobs.config.json", "/srv");
}
