import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import {
  deleteOldRuns,
  endProjects,
  finishRun,
  heartbeatRun,
  insertQueuedRun,
  openProject,
  recordAttempt,
  startRun,
} from "../../../src/db/jobs/runs.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { NO_COUNTS } from "../../../src/usage/counts.ts";
import { testDatabase } from "../../support/database.ts";
import { newRotation } from "../keys/written-ledger.ts";
import { newSeries } from "../stored-usage.ts";

const { db } = await testDatabase();

async function startExport(): Promise<string> {
  const runId = randomUUID();
  await startRun(db, { runId, kind: "export", job: "nightly", trigger: "manual" });
  return runId;
}

async function run(runId: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { rows } = await sql<Record<string, unknown>>`select * from bi.runs where run_id = ${runId}`.execute(db);
  return rows[0];
}

async function silentFor(runId: string, seconds: number): Promise<void> {
  await sql`
    update usage_export.run set heartbeat_at = now() - make_interval(secs => ${seconds}) where run_id = ${runId}
  `.execute(db);
}

test("a run that has started is running", async () => {
  expect(await run(await startExport())).toMatchObject({
    kind: "export",
    job: "nightly",
    trigger: "manual",
    status: "running",
    scheduled_for: null,
    finished_at: null,
    error: null,
  });
});

test("starting a run twice, as after a COMMIT whose answer was lost, is the same as once", async () => {
  const runId = await startExport();
  await startRun(db, { runId, kind: "export", job: "nightly", trigger: "manual" });
  expect(await run(runId)).toMatchObject({ status: "running" });
});

const COUNTS = {
  requests: 4,
  planned: 28,
  complete: 20,
  suspect: 1,
  failed: 6,
  undated: 0,
  stale: 1,
  rowsChanged: 5e9,
};

test("a run has the sums of its projects, of which each counts once, and the last one ends it", async () => {
  const runId = randomUUID();
  const queued = { runId, kind: "export", job: "nightly", trigger: "schedule", scheduledFor: new Date() } as const;
  const projects = ["a", "b", "c"].map((projectId) => ({ projectId, planned: 28 }));
  expect(await inTransaction(db, (tx) => insertQueuedRun(tx, queued, projects))).toBe(true);
  expect(await openProject(db, runId, "a")).toMatchObject({ job: "nightly", scheduledFor: expect.any(Date) });
  await recordAttempt(db, runId, "b", { ...NO_COUNTS, requests: 2, rowsChanged: 3 });
  const done = { ...NO_COUNTS, planned: 28, complete: 28 };
  const [a, b] = [
    { runId, projectId: "a", counts: { ...done, requests: 4 } },
    { runId, projectId: "b", counts: COUNTS, error: "503" },
  ];
  for (const _ of ["its answer was lost", "again"])
    expect(await endProjects(db, [a, b])).toEqual([undefined, undefined]);
  expect(await openProject(db, runId, "b")).toBeUndefined();
  expect(await run(runId)).toMatchObject({ status: "running", slices_planned: 84, requests: 10 });

  const [end] = await endProjects(db, [{ runId, projectId: "c", counts: done }]);
  expect(end).toMatchObject({ status: "failed", error: "503", counts: { planned: 84, complete: 76, failed: 6 } });
  expect(await run(runId)).toMatchObject({
    status: "failed",
    finished_at: expect.any(Date),
    requests: 10,
    slices_planned: 84,
    slices_complete: 76,
    slices_suspect: 1,
    slices_failed: 6,
    slices_stale: 1,
    rows_changed: "5000000003",
    error: "503",
  });
  expect(await openProject(db, runId, "c")).toBeUndefined();
});

test("a project that its key was allowed to read has its earlier refusals read again, and not those of this run", async () => {
  const { project, seriesId } = await newSeries(db, "model", { windowDays: 7 });
  const refuse = async (day: string) =>
    recordFailure(db, { seriesId, days: [day], fetchNo: await nextFetchNo(db), reason: "401", code: "unauthorized" });
  await refuse("2026-03-14");
  const runId = randomUUID();
  const planned = [{ projectId: project.id, planned: 2 }];
  await startRun(db, { runId, kind: "export", job: "nightly", trigger: "manual" }, planned);
  await refuse("2026-03-15");
  await endProjects(db, [{ runId, projectId: project.id, counts: NO_COUNTS, allowed: "usage" }]);
  const { rows } = await sql`
    select usage_date, error_code, attempted_at > '2000-01-01' as waits from usage_export.slice
    where series_id = ${seriesId} order by usage_date
  `.execute(db);
  expect(rows).toEqual([
    { usage_date: "2026-03-14", error_code: null, waits: false },
    { usage_date: "2026-03-15", error_code: "unauthorized", waits: true },
  ]);
});

test("an error text with a null character is stored without it, and cut to 1,000 characters", async () => {
  const runId = await startExport();
  await finishRun(db, runId, "failed", `a\u0000b ${"x".repeat(5_000)}`);
  const error = String((await run(runId))?.error);
  expect(error).toMatch(/^ab x+$/);
  expect(error).toHaveLength(1_000);
});

test("a run without a heartbeat for 30 seconds counts as interrupted, until the next heartbeat", async () => {
  const runId = await startExport();
  await silentFor(runId, 15);
  expect(await run(runId)).toMatchObject({ status: "running" });
  await silentFor(runId, 31);
  expect(await run(runId)).toMatchObject({ status: "interrupted" });
  await heartbeatRun(db, runId);
  expect(await run(runId)).toMatchObject({ status: "running" });
});

test("a run that has ended never counts as interrupted, however old its last heartbeat is", async () => {
  const runId = await startExport();
  await finishRun(db, runId, "ok", undefined);
  await silentFor(runId, 100_000);
  expect(await run(runId)).toMatchObject({ status: "ok", error: null });
});

async function madeAgo(
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

test("runs are kept for keepDays, and the newest run of each job, outcome and trigger for ever", async () => {
  const job = `job-${randomUUID()}`;
  const old = await Promise.all([
    madeAgo(500, { job }),
    madeAgo(401, { job }),
    madeAgo(450, { job, status: "failed" }),
    // Its end was never recorded.
    madeAgo(460, { job, status: "running" }),
  ]);
  const kept = await Promise.all([
    madeAgo(399, { job }),
    madeAgo(410, { job, status: "failed" }),
    madeAgo(420, { job, trigger: "backfill" }),
    madeAgo(900, { job, kind: "rotation" }),
    madeAgo(430, { job, status: "running" }),
    madeAgo(1, { job }),
  ]);
  const other = await madeAgo(2000, { job: `job-${randomUUID()}` });

  expect((await deleteOldRuns(db, 400)).runs).toBe(old.length);

  for (const runId of old) expect(await run(runId)).toBeUndefined();
  for (const runId of [...kept, other]) expect(await run(runId)).toBeDefined();
  expect(await deleteOldRuns(db, 400)).toEqual({ runs: 0, keyEvents: 0 });
});

test("the events of a retired key are kept for keepDays, and those of other keys for ever", async () => {
  const rotation = await newRotation(db);
  for (const intentId of ["gone", "rested", "used"]) await rotation.key(`${rotation.job.name}-${intentId}`, "draining");
  const retired = (intentId: string, days: number) =>
    sql`
      update usage_export.api_key set state = 'retired', sealed = null, retired_at = now() - make_interval(days => ${days})
      where intent_id = ${`${rotation.job.name}-${intentId}`}
    `.execute(db);
  await retired("gone", 401);
  await retired("rested", 399);
  await sql`update usage_export.key_event set at = at - interval '500 days' where rotation = ${rotation.job.name}`.execute(
    db,
  );

  expect((await deleteOldRuns(db, 400)).keyEvents).toBeGreaterThan(2);

  const { rows } = await sql<{ intent_id: string }>`
    select distinct intent_id from usage_export.key_event where rotation = ${rotation.job.name}
  `.execute(db);
  const left = rows.map(({ intent_id }) => intent_id.replace(`${rotation.job.name}-`, ""));
  expect(left.filter((intentId) => !intentId.endsWith("successor")).sort()).toEqual(["rested", "used"]);
  const keys = await sql`select from usage_export.api_key where rotation = ${rotation.job.name}`.execute(db);
  expect(keys.rows).toHaveLength(6);
});
