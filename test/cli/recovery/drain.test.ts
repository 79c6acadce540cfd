// How a worker stops: it finishes or releases its claimed jobs, marks no slice wrongly, and stops within `drainSeconds`.

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { programTest } from "../program-context.ts";
import { tcpProxy } from "../tcp-proxy.ts";
import { breakdowns, coverage, runs, serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db, url } = database;
const test = programTest(database);

const GROUPINGS = ["none", "endpoint", "method"];
const DRAIN_SECONDS = 8;
const DRAIN = { worker: { drainSeconds: DRAIN_SECONDS } };

test("on a signal a worker finishes the jobs it has claimed and leaves the rest to others", async ({ context }) => {
  const emulator = await serveAndConfigure(context, {
    service: { maxConcurrent: 1 },
    exports: [{ groupings: GROUPINGS }],
    rest: { worker: { drainSeconds: 60 } },
  });
  const worker = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  worker.kill("SIGTERM");
  await worker.waitFor("worker stops");
  emulator.fault = undefined;
  releaseAnswers();
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(breakdowns(emulator)).toHaveLength(2);
  expect(await coverage(db)).toEqual({ complete: 4, missing: 2 });
  expect(await runs(db)).toMatchObject([{ status: "running", requests: 2, failed: 0 }]);

  context.start(["start"]);
  await expectWhole();
  expect(breakdowns(emulator)).toHaveLength(3);
});

test("jobs that can't be finished in time are released, and nothing is marked as failed", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: GROUPINGS }], rest: DRAIN });
  const worker = context.start(["start"]);
  await holdAnswersFrom(emulator, 1);
  const stoppedMs = performance.now();
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(performance.now() - stoppedMs).toBeLessThan(DRAIN_SECONDS * 1000 + BUSY_MS);
  expect(await coverage(db)).toEqual({ missing: 6 });
  // Another worker can claim all of it at once, without waiting until this one counts as dead.
  const { rows } = await sql`
    select state::text, start_after <= now() as now from usage_export_queue.job where state <> 'completed'
  `.execute(db);
  expect(rows).toEqual([{ state: "created", now: true }]);

  emulator.fault = undefined;
  context.start(["start"]);
  await expectWhole();
});

test("a database that does not answer does not keep a worker from stopping in time", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: GROUPINGS }], rest: DRAIN });
  await using proxy = await tcpProxy(url);
  const worker = context.start(["start"], { DATABASE_URL: proxy.url });
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  proxy.silence();
  emulator.fault = undefined;
  releaseAnswers();
  const stoppedMs = performance.now();
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(performance.now() - stoppedMs).toBeLessThan(DRAIN_SECONDS * 1000 + BUSY_MS);
  context.start(["start"]);
  await expectWhole();
});

test("a stopping worker waits for a busy database for as long as drainSeconds allows", async ({ context }) => {
  const emulator = await serveAndConfigure(context, {
    service: { maxConcurrent: 1 },
    exports: [{ groupings: ["none"] }],
    rest: { worker: { drainSeconds: 60 } },
  });
  const worker = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  await db.transaction().execute(async (tx) => {
    await sql`lock table usage_export.slice in share row exclusive mode`.execute(tx);
    worker.kill("SIGTERM");
    await worker.waitFor("worker stops");
    emulator.fault = undefined;
    releaseAnswers();
    // Other programs give up after 10 s.
    await sleep(12_000);
  });
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(await coverage(db)).toEqual({ complete: 2 });
});

test("a second signal ends the worker at once, and others do its jobs", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: GROUPINGS }] });
  const worker = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  worker.kill("SIGTERM");
  await worker.waitFor("worker stops");
  const stoppedMs = performance.now();
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: null });
  expect(performance.now() - stoppedMs).toBeLessThan(BUSY_MS);
  emulator.fault = undefined;
  releaseAnswers();
  context.start(["start"]);
  await expectWhole();
});

async function expectWhole(): Promise<void> {
  const [run] = await waitForRuns(db, 1);
  expect(run).toMatchObject({ status: "ok", requests: 3, complete: 6, failed: 0 });
  expect(await coverage(db)).toEqual({ complete: 6 });
}
