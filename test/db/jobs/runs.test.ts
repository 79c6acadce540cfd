// How runs and their projects are stored, when a run counts as interrupted, and how long runs and key events are kept.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { pauseJob, resumeJob } from "../../../src/db/jobs/jobs.ts";
import {
  deleteOldRecords,
  endProjects,
  finishRun,
  heartbeatRun,
  insertRun,
  readOpenProjects,
  recordAttempt,
  runningOrUnconfiguredProjects,
  startRun,
} from "../../../src/db/jobs/runs.ts";
import { readRun, readRuns } from "../../../src/facts/jobs.ts";
import { NO_COUNTS } from "../../../src/usage/counts.ts";
import { testDatabase } from "../../support/database.ts";
import { newRotation } from "../keys/written-ledger.ts";
import { failOn, newSeries } from "../stored-usage.ts";

const { db, read } = await testDatabase();

const MANUAL = { kind: "export", job: "nightly", trigger: "manual" } as const;

async function startExport(): Promise<string> {
  const runId = randomUUID();
  await startRun(db, { runId, ...MANUAL });
  return runId;
}

async function readRow(runId: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const [row] = await read(sql<Record<string, unknown>>`select * from bi.runs where run_id = ${runId}`);
  return row;
}

/** Makes the run's newest heartbeat this old. */
async function ageHeartbeat(runId: string, seconds: number): Promise<void> {
  await sql`
    update usage_export.run set heartbeat_at = now() - make_interval(secs => ${seconds}) where run_id = ${runId}
  `.execute(db);
}

test("a run that is started twice, as after a COMMIT whose answer was lost, runs once", async () => {
  const runId = await startExport();
  const running = { ...MANUAL, status: "running", scheduled_for: null, finished_at: null, error: null };
  expect(await readRow(runId)).toMatchObject(running);
  await startRun(db, { runId, ...MANUAL });
  expect(await readRow(runId)).toMatchObject(running);
});

test("while a run is live, the projects that it has not reached yet are held back from other runs", async () => {
  const runId = randomUUID();
  const projects = ["done", "ahead"].map((projectId) => ({ projectId, planned: 0 }));
  await startRun(db, { runId, kind: "rotation", job: "all", trigger: "manual" }, projects);
  await endProjects(db, [{ runId, projectId: "done", counts: NO_COUNTS }]);
  const found = () => inTransaction(db, (tx) => runningOrUnconfiguredProjects(tx, { kind: "rotation", name: "all" }));
  expect(await found()).toEqual(new Set(["ahead"]));
  await ageHeartbeat(runId, 31);
  expect(await found()).toEqual(new Set());
});

test("a run has the sums of its projects", async () => {
  const runId = randomUUID();
  const queued = { runId, kind: "export", job: "nightly", trigger: "schedule", scheduledFor: new Date() } as const;
  const projects = ["a", "b", "c"].map((projectId) => ({ projectId, planned: 28 }));
  expect(await inTransaction(db, (tx) => insertRun(tx, queued, projects))).toBe(true);
  const all = projects.map((one) => ({ ...one, runId }));
  const open = async () => (await readOpenProjects(db, all)).map((one) => one?.projectId);
  expect(await open()).toEqual(["a", "b", "c"]);
  await recordAttempt(db, runId, "b", { ...NO_COUNTS, requests: 2, rowsChanged: 3 });
  const done = { ...NO_COUNTS, planned: 28, complete: 28 };
  const partly = { ...done, requests: 4, complete: 20, suspect: 1, failed: 6, stale: 1, rowsChanged: 5e9 };
  const [a, b] = [
    { runId, projectId: "a", counts: { ...done, requests: 4 } },
    { runId, projectId: "b", counts: partly, error: "503" },
  ];
  // The second time as after a COMMIT whose answer was lost: nothing is counted twice.
  for (let i = 0; i < 2; i++) expect(await endProjects(db, [a, b])).toEqual([undefined, undefined]);
  expect(await open()).toEqual([undefined, undefined, "c"]);
  expect(await readRow(runId)).toMatchObject({ status: "running", slices_planned: 84, requests: 10 });

  const [end] = await endProjects(db, [{ runId, projectId: "c", counts: done }]);
  expect(end).toMatchObject({ status: "failed", error: "503", ...{ planned: 84, complete: 76, failed: 6 } });
  expect(await readRow(runId)).toMatchObject({
    ...{ status: "failed", finished_at: expect.any(Date), requests: 10, rows_changed: "5000000003", error: "503" },
    ...{ slices_planned: 84, slices_complete: 76, slices_suspect: 1, slices_failed: 6, slices_stale: 1 },
  });
  expect(await open()).toEqual([undefined, undefined, undefined]);
});

test("a run that may read a project makes due again only the days that were refused before it began", async () => {
  const { project, seriesId } = await newSeries(db, "model", { windowDays: 7 });
  const refuse = (day: string) => failOn(db, seriesId, [day], { code: "unauthorized" });
  await refuse("2026-03-14");
  const runId = randomUUID();
  await startRun(db, { runId, ...MANUAL }, [{ projectId: project.id, planned: 2 }]);
  await refuse("2026-03-15");
  await endProjects(db, [{ runId, projectId: project.id, counts: NO_COUNTS, readableSource: "usage" }]);
  const rows = await read(sql`
    select usage_date, error_code, attempted_at > '2000-01-01' as waits from usage_export.slice
    where series_id = ${seriesId} order by usage_date
  `);
  expect(rows).toEqual([
    { usage_date: "2026-03-14", error_code: null, waits: false },
    { usage_date: "2026-03-15", error_code: "unauthorized", waits: true },
  ]);
});

test("an error text with a null character is stored without it", async () => {
  const runId = await startExport();
  await finishRun(db, runId, "failed", `a\u0000b ${"x".repeat(5_000)}`);
  const error = String((await readRow(runId))?.error);
  expect(error).toMatch(/^ab x+$/);
  expect(error).toHaveLength(1_000);
});

test("a run without a heartbeat for 30 seconds counts as interrupted, until the next heartbeat or its end", async () => {
  const runId = await startExport();
  const status = async () => (await readRow(runId))?.status;
  await ageHeartbeat(runId, 15);
  expect(await status()).toBe("running");
  await ageHeartbeat(runId, 31);
  expect(await status()).toBe("interrupted");
  await heartbeatRun(db, runId);
  expect(await status()).toBe("running");
  await finishRun(db, runId, "ok", undefined);
  await ageHeartbeat(runId, 100_000);
  expect(await readRow(runId)).toMatchObject({ status: "ok", error: null });
});

test("the newest runs of all jobs are listed with the counts of their slices, the newest first", async () => {
  const counts = { planned: 5, complete: 2, suspect: 1, failed: 1, stale: 1, rowsChanged: 7 };
  for (const error of ["first", "second", "third"]) {
    const runId = randomUUID();
    await startRun(db, { runId, ...MANUAL, job: "weekly" }, [{ projectId: "p1", planned: 5 }]);
    await endProjects(db, [{ runId, projectId: "p1", counts: { ...NO_COUNTS, ...counts } }]);
    await finishRun(db, runId, "failed", error);
  }
  expect((await readRuns(db)).slice(0, 2)).toMatchObject([
    { ...MANUAL, job: "weekly", ...counts, status: "failed", error: "third" },
    { ...MANUAL, job: "weekly", ...counts, status: "failed", error: "second" },
  ]);
});

async function insertRunDaysAgo(
  days: number,
  part: { job: string; status?: string; trigger?: string; kind?: string },
): Promise<string> {
  const runId = randomUUID();
  const { job, status = "ok", trigger = "schedule", kind = "export" } = part;
  await sql`
    insert into usage_export.run (run_id, kind, job, trigger, status, started_at, heartbeat_at)
    select ${runId}, ${kind}, ${job}, ${trigger}, ${status}, at, at from (select now() - make_interval(days => ${days}) as at) moment
  `.execute(db);
  return runId;
}

test("the projects of a run are listed with the failed ones first, then those that are not done yet", async () => {
  const runId = randomUUID();
  const projects = ["done", "ahead", "refused"].map((projectId) => ({ projectId, planned: 1 }));
  await inTransaction(db, (tx) => insertRun(tx, { runId, ...MANUAL }, projects));
  const ended = { runId, counts: NO_COUNTS };
  await endProjects(db, [
    { ...ended, projectId: "done" },
    { ...ended, projectId: "refused", error: "n\0o" },
  ]);
  const shown = (await readRun(db, runId))?.projects.map(({ project, outcome }) => [project, outcome]);
  expect(shown).toEqual([
    ["refused", "failed"],
    ["ahead", "open"],
    ["done", "ok"],
  ]);
});

test("a run of 101 projects lists 100 of them", async () => {
  const runId = randomUUID();
  const projects = Array.from({ length: 101 }, (_, i) => ({ projectId: `project ${i}`, planned: 1 }));
  await inTransaction(db, (tx) => insertRun(tx, { runId, ...MANUAL }, projects));
  expect(await readRun(db, runId)).toMatchObject({ projectCount: 101, projects: { length: 100 } });
});

test("runs older than keepDays (400) are deleted except the newest of each job, outcome and trigger", async () => {
  const job = `job-${randomUUID()}`;
  const old = await Promise.all([
    insertRunDaysAgo(500, { job }),
    insertRunDaysAgo(401, { job }),
    insertRunDaysAgo(450, { job, status: "failed" }),
    // The end of this run was never recorded.
    insertRunDaysAgo(460, { job, status: "running" }),
  ]);
  const kept = await Promise.all([
    insertRunDaysAgo(399, { job }),
    insertRunDaysAgo(410, { job, status: "failed" }),
    insertRunDaysAgo(420, { job, trigger: "backfill" }),
    insertRunDaysAgo(900, { job, kind: "rotation" }),
    insertRunDaysAgo(430, { job, status: "running" }),
    insertRunDaysAgo(1, { job }),
  ]);
  const other = await insertRunDaysAgo(2000, { job: `job-${randomUUID()}` });

  await sql`
    insert into usage_export.worker (worker_id, host, pid, version, last_seen_at)
    select gen_random_uuid(), 'seen ' || days || ' days ago', 1, '1', now() - make_interval(days => days) from unnest(array[6, 8]) as days
  `.execute(db);
  expect((await deleteOldRecords(db, 400)).runs).toBe(old.length);

  expect(await read(sql`select host from usage_export.worker`)).toEqual([{ host: "seen 6 days ago" }]);
  for (const runId of old) expect(await readRow(runId)).toBeUndefined();
  for (const runId of [...kept, other]) expect(await readRow(runId)).toBeDefined();
  expect(await deleteOldRecords(db, 400)).toEqual({ runs: 0, keyEvents: 0 });
});

test("only the events of retired keys are deleted after keepDays (400)", async () => {
  const rotation = await newRotation(db);
  for (const intentId of ["gone", "rested", "used"])
    await rotation.recordKey(`${rotation.job.name}-${intentId}`, "draining");
  const retired = (intentId: string, days: number) =>
    sql`
      update usage_export.api_key set state = 'retired', sealed = null, retired_at = now() - make_interval(days => ${days})
      where intent_id = ${`${rotation.job.name}-${intentId}`}
    `.execute(db);
  await retired("gone", 401);
  await retired("rested", 399);
  await read(
    sql`update usage_export.key_event set at = at - interval '500 days' where rotation = ${rotation.job.name}`,
  );

  expect((await deleteOldRecords(db, 400)).keyEvents).toBeGreaterThan(2);

  const rows = await read(sql<{ intent_id: string }>`
    select distinct intent_id from usage_export.key_event where rotation = ${rotation.job.name}
  `);
  const left = rows.map(({ intent_id }) => intent_id.replace(`${rotation.job.name}-`, ""));
  expect(left.filter((intentId) => !intentId.endsWith("successor")).sort()).toEqual(["rested", "used"]);
  expect(await read(sql`select from usage_export.api_key where rotation = ${rotation.job.name}`)).toHaveLength(6); // 3 with their successors
});

test("pausing a paused job again keeps the time of its pause", async () => {
  const job = { kind: "export", name: `job-${randomUUID()}` } as const;
  await pauseJob(db, job, { why: "moving", by: "me" });
  const paused = sql`update usage_export.job set paused_at = '2026-03-16T01:00:00Z' where name = ${job.name}`;
  await paused.execute(db);
  const pause = { why: "still moving", by: "you" };
  expect(await pauseJob(db, job, pause)).toMatchObject({ pause: { ...pause, at: new Date("2026-03-16T01:00:00Z") } });
  expect(await resumeJob(db, job)).toEqual(await resumeJob(db, job));
});
