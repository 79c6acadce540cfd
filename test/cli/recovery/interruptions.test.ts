// Workers that are told to stop or lose their database. A stopping worker finishes or releases its claimed jobs, marks no slice wrongly, and
// stops within `drainSeconds`.

import { sql } from "kysely";
import { expect } from "vitest";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { BUSY_MS } from "../../support/limits.ts";
import type { Program } from "../../support/program.ts";
import { breakdowns, coverage, holdAnswersFrom, runs, waitForRuns } from "../evidence.ts";
import { databaseTest } from "../program-context.ts";

const { test, db, url, read } = await databaseTest();

const GROUPINGS = ["none", "endpoint", "method"];
const DRAIN_SECONDS = 3;
const SHORT_DRAIN = { exports: [{ groupings: GROUPINGS }], worker: { drainSeconds: DRAIN_SECONDS } };
const LONG_DRAIN = { service: { maxConcurrent: 1 }, worker: { drainSeconds: 60 } };

/** The run has read both days of the three groupings. */
async function expectWholeRun(): Promise<void> {
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "ok", requests: 3, complete: 6, failed: 0 }]);
  expect(await coverage(db)).toEqual({ complete: 6 });
}

async function expectStopsInTime(worker: Program): Promise<void> {
  const signalledMs = performance.now();
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(performance.now() - signalledMs).toBeLessThan(DRAIN_SECONDS * 1000 + BUSY_MS);
}

test("on a signal a worker finishes only the jobs it has claimed", async ({ context }) => {
  const emulator = await context.setUp({ ...LONG_DRAIN, exports: [{ groupings: GROUPINGS }] });
  const worker = context.work();
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  worker.kill("SIGTERM");
  await worker.waitFor("worker stops");
  emulator.fault = undefined;
  releaseAnswers();
  expect(await worker.ended).toMatchObject({ status: 0 });
  // The worker had claimed two requests, the second of which waited for the only slot. It finished both.
  expect(breakdowns(emulator)).toHaveLength(2);
  expect(await coverage(db)).toEqual({ complete: 4, missing: 2 });
  expect(await runs(db)).toMatchObject([{ status: "running", requests: 2, failed: 0 }]);

  context.work();
  await expectWholeRun();
  expect(breakdowns(emulator)).toHaveLength(3);
});

test("jobs that can't be finished in time are released", async ({ context }) => {
  const emulator = await context.setUp(SHORT_DRAIN);
  const worker = context.work();
  await holdAnswersFrom(emulator, 1);
  await expectStopsInTime(worker);
  expect(await coverage(db)).toEqual({ missing: 6 });
  // Another worker can claim all of it at once, without waiting until this one counts as dead.
  const { rows } = await sql`
    select state::text, start_after <= now() as now, priority, group_id from usage_export_queue.job where state <> 'completed'
  `.execute(db);
  expect(rows).toEqual([{ state: "created", now: true, priority: 1, group_id: "env USAGE_EXPORT_KEY" }]);

  emulator.fault = undefined;
  context.work();
  await expectWholeRun();
});

test("a database that does not answer does not keep a worker from stopping in time", async ({ context }) => {
  const emulator = await context.setUp(SHORT_DRAIN);
  await using proxy = await startPostgresFront(url);
  const worker = context.start(["start"], { DATABASE_URL: proxy.url });
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  proxy.silence();
  emulator.fault = undefined;
  releaseAnswers();
  await expectStopsInTime(worker);
  context.work();
  await expectWholeRun();
});

test("a stopping worker waits for a busy database for as long as drainSeconds allows", async ({ context }) => {
  const emulator = await context.setUp(LONG_DRAIN);
  const worker = context.work();
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  await db.transaction().execute(async (tx) => {
    await sql`lock table usage_export.slice in share row exclusive mode`.execute(tx);
    worker.kill("SIGTERM");
    await worker.waitFor("worker stops");
    emulator.fault = undefined;
    releaseAnswers();
    // A stopped command would give up after 10 s.
    const waitingLong = () =>
      read(sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '11 s'
      `);
    await expect.poll(waitingLong).toHaveLength(1);
  });
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(await coverage(db)).toEqual({ complete: 2 });
});

test("a second signal ends the worker at once", async ({ context }) => {
  const emulator = await context.setUp({ exports: [{ groupings: GROUPINGS }] });
  const worker = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  worker.kill("SIGTERM");
  await worker.waitFor("worker stops");
  const signalledMs = performance.now();
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: null });
  expect(performance.now() - signalledMs).toBeLessThan(BUSY_MS);
  emulator.fault = undefined;
  releaseAnswers();
  context.work();
  await expectWholeRun();
});

test("a worker waits for a database that can't be reached", async ({ context }) => {
  await context.setUp();
  await using proxy = await startPostgresFront(url);
  proxy.cut();
  const worker = context.work({ DATABASE_URL: proxy.url });
  expect(await worker.waitFor("database not reached")).toContain(new URL(proxy.url).host);
  const { url: monitor } = JSON.parse(await worker.waitFor("monitor listens"));
  expect(await ask(`${monitor}/readyz`)).toEqual({ status: 503, body: expect.stringContaining("can't be used") });
  expect(await ask(`${monitor}/livez`)).toMatchObject({ status: 200 });
  proxy.restore();
  await waitForRuns(db, 1);
  expect(await ask(`${monitor}/readyz`)).toEqual({ status: 200, body: "ok\n" });
});

test("a worker that waits for its database stops on a signal", async ({ context }) => {
  await context.setUp();
  const worker = context.work({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing" });
  await worker.waitFor("database not reached");
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
});

test("losing the database in the middle of a run costs time and nothing else", async ({ context }) => {
  const groupings = ["none", "endpoint", "method", "model"];
  const emulator = await context.setUp({ service: { maxConcurrent: 2 }, exports: [{ groupings }] });
  await using proxy = await startPostgresFront(url);
  const worker = context.work({ DATABASE_URL: proxy.url });
  const releaseAnswers = await holdAnswersFrom(emulator, 2);
  proxy.cut();
  emulator.fault = undefined;
  releaseAnswers();
  await worker.waitFor("database not reached");
  proxy.restore();
  const [run] = await waitForRuns(db, 1);
  expect(run).toMatchObject({ status: "ok", requests: 4, planned: 8, complete: 8, failed: 0 });
  expect(await coverage(db)).toEqual({ complete: 8 });
  expect(await runs(db)).toHaveLength(1);
});

async function ask(address: string): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(address);
  return { status: response.status, body: await response.text() };
}
