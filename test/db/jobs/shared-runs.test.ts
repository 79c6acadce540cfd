import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import {
  endRunsWithoutJobs,
  insertRun,
  type RunEnd,
  recordOutcomes,
  recordQueuedRequests,
} from "../../../src/db/jobs/runs.ts";
import type { RunCounts } from "../../../src/usage/export.ts";
import { testDatabase } from "../../support/database.ts";

const { db } = await testDatabase();

const SCHEDULED_FOR = new Date("2026-03-19T02:15:00Z");
const READ: RunCounts = {
  requests: 1,
  planned: 0,
  complete: 2,
  suspect: 0,
  undated: 0,
  failed: 0,
  stale: 1,
  rowsChanged: 3,
};

/** Whether the run was inserted. */
async function insertScheduled(
  job: string,
  scheduledFor: Date | undefined,
  runId: string = randomUUID(),
): Promise<boolean> {
  const run = { runId, kind: "export", job, trigger: "schedule", scheduledFor } as const;
  return inTransaction(db, (tx) => insertRun(tx, run));
}

/** What `recordOutcomes` returns for each request of a run. */
async function recordAll(outcomes: readonly RunCounts[]): Promise<readonly (RunEnd | undefined)[]> {
  const runId = randomUUID();
  await insertScheduled(`job-${runId}`, undefined, runId);
  const counts = { requests: outcomes.length, slices: 2 * outcomes.length };
  await inTransaction(db, (tx) => recordQueuedRequests(tx, runId, counts));
  const ends: (RunEnd | undefined)[] = [];
  for (const outcome of outcomes)
    ends.push(await inTransaction(db, (tx) => recordOutcomes(tx, runId, outcome, undefined)));
  return ends;
}

test("a job has one run for each scheduled time, even if two processes start it at once", async () => {
  const job = `job-${randomUUID()}`;
  expect(await Promise.all([insertScheduled(job, SCHEDULED_FOR), insertScheduled(job, SCHEDULED_FOR)])).toEqual(
    expect.arrayContaining([true, false]),
  );
  expect(await insertScheduled(`another ${job}`, SCHEDULED_FOR)).toBe(true);
});

test("a job can have any number of runs without a scheduled time", async () => {
  const job = `job-${randomUUID()}`;
  expect([await insertScheduled(job, undefined), await insertScheduled(job, undefined)]).toEqual([true, true]);
});

test("a run ends with its last request", async () => {
  expect(await recordAll([READ, READ])).toMatchObject([undefined, { status: "ok" }]);
});

test.each<[string, Partial<RunCounts>]>([
  ["fails", { complete: 1, failed: 1 }],
  ["is suspect", { complete: 1, suspect: 1 }],
])("a run fails if a slice %s, in whichever of its requests", async (_, part) => {
  const worse = { ...READ, ...part };
  expect((await recordAll([worse, READ])).at(-1)).toMatchObject({ status: "failed" });
  expect((await recordAll([READ, worse])).at(-1)).toMatchObject({ status: "failed" });
});

test("if the queue jobs of a run were lost, its open requests count as failed, however many slices it stored before", async () => {
  const runId = randomUUID();
  await insertScheduled(`job-${runId}`, undefined, runId);
  await inTransaction(db, (tx) => recordQueuedRequests(tx, runId, { requests: 3, slices: 3 }));
  await inTransaction(db, (tx) => recordOutcomes(tx, runId, { ...READ, complete: 30, stale: 0 }, undefined));
  const ended = await endRunsWithoutJobs(db);
  expect(ended.find((run) => run.runId === runId)).toMatchObject({
    status: "failed",
    counts: { complete: 30, failed: 2 },
  });
});
