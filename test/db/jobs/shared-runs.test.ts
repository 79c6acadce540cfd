import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import {
  endRunsWithoutJobs,
  insertRun,
  type RequestOutcome,
  type RunEnd,
  recordOutcome,
  recordQueuedRequests,
} from "../../../src/db/jobs/runs.ts";
import { testDatabase } from "../../support/database.ts";

const { db } = await testDatabase();

const MOMENT = new Date("2026-03-19T02:15:00Z");
const READ: RequestOutcome = {
  complete: 2,
  suspect: 0,
  undated: 0,
  failed: 0,
  stale: 1,
  rowsChanged: 3,
  error: undefined,
};

/** Whether it was begun. */
async function begun(job: string, scheduledFor: Date | undefined, runId: string = randomUUID()): Promise<boolean> {
  const run = { runId, kind: "export", job, trigger: "schedule", scheduledFor, status: "running" } as const;
  return inTransaction(db, (tx) => insertRun(tx, run));
}

/** What each of the requests of a run returns as it is settled. */
async function settled(outcomes: readonly RequestOutcome[]): Promise<readonly (RunEnd | undefined)[]> {
  const runId = randomUUID();
  await begun(`job-${runId}`, undefined, runId);
  const counts = { requests: outcomes.length, slices: 2 * outcomes.length };
  await inTransaction(db, (tx) => recordQueuedRequests(tx, runId, counts));
  const ends: (RunEnd | undefined)[] = [];
  for (const outcome of outcomes) ends.push(await inTransaction(db, (tx) => recordOutcome(tx, runId, outcome)));
  return ends;
}

test("of one moment there is one run of a job, whoever begins it", async () => {
  const job = `job-${randomUUID()}`;
  expect(await Promise.all([begun(job, MOMENT), begun(job, MOMENT)])).toEqual(expect.arrayContaining([true, false]));
  expect(await begun(`another ${job}`, MOMENT)).toBe(true);
});

test("a job may be run without a moment as often as somebody asks", async () => {
  const job = `job-${randomUUID()}`;
  expect([await begun(job, undefined), await begun(job, undefined)]).toEqual([true, true]);
});

test("a run is over with its last request", async () => {
  expect(await settled([READ, READ])).toMatchObject([undefined, { status: "ok" }]);
});

test.each<[string, Partial<RequestOutcome>]>([
  ["failed", { complete: 1, failed: 1 }],
  ["is suspect", { complete: 1, suspect: 1 }],
])("a run of which a slice %s has failed, whenever that was", async (_, part) => {
  const worse = { ...READ, ...part };
  expect((await settled([worse, READ])).at(-1)).toMatchObject({ status: "failed" });
  expect((await settled([READ, worse])).at(-1)).toMatchObject({ status: "failed" });
});

test("a run whose work was lost counts what it did not read, however many slices the answers before had", async () => {
  const runId = randomUUID();
  await begun(`job-${runId}`, undefined, runId);
  await inTransaction(db, (tx) => recordQueuedRequests(tx, runId, { requests: 3, slices: 3 }));
  await inTransaction(db, (tx) => recordOutcome(tx, runId, { ...READ, complete: 30, stale: 0 }));
  const ended = await endRunsWithoutJobs(db);
  expect(ended.find((run) => run.runId === runId)).toMatchObject({
    status: "failed",
    counts: { complete: 30, failed: 2 },
  });
});
