import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { finishRun, startRun, touchRun } from "../../src/db/runs.ts";
import { NOTHING_DONE } from "../../src/usage/export.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

async function started(): Promise<string> {
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
  expect(await run(await started())).toMatchObject({
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
  const runId = await started();
  await startRun(db, { runId, kind: "export", job: "nightly", trigger: "manual" });
  expect(await run(runId)).toMatchObject({ status: "running" });
});

test("a finished run has its counts", async () => {
  const runId = await started();
  await finishRun(
    db,
    runId,
    "failed",
    { requests: 4, planned: 28, complete: 20, suspect: 1, failed: 7, undated: 0, rowsChanged: 5_000_000_000 },
    "503",
  );
  expect(await run(runId)).toMatchObject({
    status: "failed",
    finished_at: expect.any(Date),
    requests: 4,
    slices_planned: 28,
    slices_complete: 20,
    slices_suspect: 1,
    slices_failed: 7,
    rows_changed: "5000000000",
    error: "503",
  });
});

test("a reason of any length and with any character is stored, cut", async () => {
  const runId = await started();
  await finishRun(db, runId, "failed", NOTHING_DONE, `a\u0000b ${"x".repeat(5_000)}`);
  const error = String((await run(runId))?.error);
  expect(error).toMatch(/^ab x+$/);
  expect(error).toHaveLength(1_000);
});

test("a run that says nothing for a minute was interrupted, until it speaks again", async () => {
  const runId = await started();
  await silentFor(runId, 30);
  expect(await run(runId)).toMatchObject({ status: "running" });
  await silentFor(runId, 61);
  expect(await run(runId)).toMatchObject({ status: "interrupted" });
  await touchRun(db, runId);
  expect(await run(runId)).toMatchObject({ status: "running" });
});

test("a run that has ended was not interrupted, however long ago", async () => {
  const runId = await started();
  await finishRun(db, runId, "ok", NOTHING_DONE, undefined);
  await silentFor(runId, 100_000);
  expect(await run(runId)).toMatchObject({ status: "ok", error: null });
});
