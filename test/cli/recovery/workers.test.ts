// Workers that share a run, are killed or suspended, or meet failures. The requests at the service show what is read again.

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import type { Emulator } from "../../support/emulator.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { breakdowns, coverage, holdAnswersFrom, type Run, runs, waitForRuns } from "../evidence.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { manyFilters } from "../small-config.ts";

const { test, db } = await databaseTest();

const REQUESTS = 50;
/** A worker claims at most twice as many requests as it may make at once. */
const CLAIMED_MAX = 8;
const WHOLE_RUN = { status: "ok", planned: 2 * REQUESTS, complete: 2 * REQUESTS, failed: 0 };

/** One project with 50 series of two days. */
function serveProject(context: ProgramContext): Promise<Emulator> {
  const exports = [{ checkFeatures: "off", filters: manyFilters(REQUESTS) }];
  const usage = () => [{ accessor: "accessor-1", endpoint: "listen", requests: 5 }];
  return context.setUp({ service: { maxConcurrent: CLAIMED_MAX / 2 }, exports }, { usage });
}

async function expectStoredOnce(): Promise<void> {
  expect(await coverage(db)).toEqual({ complete: 2 * REQUESTS });
  const { rows } = await sql`
    select count(*)::integer as rows, max(revision) as revision from usage_export.slice_row
  `.execute(db);
  expect(rows).toEqual([{ rows: 2, revision: 1 }]);
}

/** Kills a worker that gets no more answers from its twentieth request on. */
async function killInTheMiddle(context: ProgramContext, emulator: Emulator): Promise<void> {
  const worker = context.start(["start"]);
  await holdAnswersFrom(emulator, 20);
  worker.kill("SIGKILL");
  await worker.ended;
  emulator.fault = undefined;
}

test("another worker takes up the project of a killed one within 40 seconds", async ({ context }) => {
  const emulator = await serveProject(context);
  await killInTheMiddle(context, emulator);
  const killedMs = performance.now();
  const askedBefore = breakdowns(emulator).length;
  const storedSeries = ((await coverage(db)).complete ?? 0) / 2;
  expect(storedSeries).toBeGreaterThan(10);

  context.work();
  expect(await waitForRuns(db, 1)).toMatchObject([WHOLE_RUN]);

  expect(performance.now() - killedMs).toBeLessThan(40_000 + BUSY_MS);
  const repeated = breakdowns(emulator).length - REQUESTS;
  expect(repeated).toBe(askedBefore - storedSeries);
  expect(repeated).toBeLessThanOrEqual(CLAIMED_MAX);
  await expectStoredOnce();
});

test("a suspended worker that wakes up beside its successor stores and counts nothing twice", async ({ context }) => {
  const emulator = await serveProject(context);
  const sleeper = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 20);
  sleeper.kill("SIGSTOP");
  const askedBefore = breakdowns(emulator).length;
  // The answers are slow, so that the sleeper has time to do something wrong.
  emulator.fault = () => ({ kind: "hold", until: sleep(1_500) });
  releaseAnswers();
  const other = context.work();
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(askedBefore + 5);
  sleeper.kill("SIGCONT");

  // If both ask for a slice within 50 ms, either may win, and the other one's answer is dropped as stale.
  const withStale = (all: readonly Run[]) => all.map((run) => ({ ...run, complete: run.complete + run.stale }));
  expect(withStale(await waitForRuns(db, 1))).toMatchObject([WHOLE_RUN]);
  for (const worker of [sleeper, other]) {
    worker.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ status: 0 });
  }
  expect(withStale(await runs(db))).toMatchObject([WHOLE_RUN]);
  await expectStoredOnce();
});

test("a request that fails for a while is the only one that is made again", async ({ context }) => {
  const emulator = await serveProject(context);
  const fails = (path: string) => path.includes("accessor-7&") || path.endsWith("accessor-7");
  emulator.fault = ({ path }) => (fails(path) ? { kind: "answer", status: 503 } : undefined);
  const line = JSON.parse(await context.work().waitFor("requests failed, to be tried again"));
  expect(line).toMatchObject({ code: "unavailable", filter: "accessor 7", attempt: 1, attempts: 8 });
  expect(await runs(db)).toMatchObject([{ status: "running", requests: REQUESTS }]);

  emulator.fault = undefined;
  expect(await waitForRuns(db, 1)).toMatchObject([WHOLE_RUN]);
  expect(breakdowns(emulator).filter((path) => !fails(path))).toHaveLength(REQUESTS - 1);
});

test("another run reads the days of a run whose workers kept dying", async ({ context }) => {
  await killInTheMiddle(context, await serveProject(context));
  await sql`
    update usage_export_queue.job set retry_count = retry_limit, heartbeat_on = now() - interval '1 minute'
  `.execute(db);
  context.work();
  const failed = async () => (await sql`select from usage_export_queue.job where state = 'failed'`.execute(db)).rows;
  await expect.poll(failed).toHaveLength(1);
  // A starting worker ticks at once. Without one, the next tick would come within 10 s.
  context.work();
  expect(await waitForRuns(db, 2)).toMatchObject([{ status: "failed" }, { trigger: "catchup", status: "ok" }]);
  expect(await coverage(db)).toEqual({ complete: 2 * REQUESTS });
});

test("three workers make 300 requests once each, within the caps", async ({ context }) => {
  const delayMs = 60;
  const record = { endpoint: "listen", method: "sync", model: ["m"], deployment: "hosted" };
  const usage = () => Array.from({ length: 50 }, (_, i) => ({ ...record, accessor: `accessor-${i}`, requests: i + 1 }));
  // Six groupings of 50 filters are 300 series of two days.
  const groupings = ["none", "endpoint", "method", "model", "deployment", "accessor"];
  const emulator = await context.setUp(
    {
      service: { maxConcurrent: 4, requestsPerSecond: 40 },
      exports: [{ groupings, checkFeatures: "off", filters: manyFilters(50) }],
    },
    { usage, fault: () => ({ kind: "hold", until: sleep(delayMs) }) },
  );
  for (let i = 0; i < 3; i++) context.start(["start"]);
  const counts = { requests: 300, planned: 600, complete: 600, failed: 0 };
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "ok", ...counts }]);
  expect(new Set(breakdowns(emulator)).size).toBe(300);
  expect(breakdowns(emulator)).toHaveLength(300);

  // The caps are checked by the times at the service. A request is in flight at least from its arrival until its answer is sent.
  const times = emulator.requests.map(({ receivedAt }) => receivedAt.getTime()).sort((a, b) => a - b);
  const atOnce = times.map((time, i) => times.slice(0, i + 1).filter((other) => other > time - delayMs).length);
  expect(Math.max(...atOnce)).toBeLessThanOrEqual(4);
  // 40 are allowed in any second, and some more arrive late on a busy machine. The four slots alone would allow 66.
  const mostWithin = (ms: number) =>
    Math.max(...times.map((time, i) => times.slice(i).filter((other) => other < time + ms).length));
  expect(mostWithin(1000)).toBeLessThanOrEqual(50);
  expect(mostWithin(4000)).toBeLessThanOrEqual(170);
});

test("two workers divide the projects of a run", async ({ context }) => {
  const ids = Array.from({ length: 40 }, (_, i) => `divided-${i}`);
  const secret = context.newSecret();
  const emulator = await context.setUp(
    { projects: ids.map((id) => ({ id, name: id, key: { env: "ACCOUNT_KEY" } })), exports: [{ projects: ["*"] }] },
    {
      projects: () => ids.map((id) => ({ id, name: id })),
      consoleKeys: [{ secret, projectId: "divided-0", scopes: ["member"], isAccountKey: true }],
    },
  );
  const env = { ACCOUNT_KEY: secret, USAGE_EXPORT_KEY: undefined, LOG_LEVEL: "debug" };
  const workers = [context.work(env), context.work(env)];
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  const active = async () => (await sql`select from usage_export_queue.job where state = 'active'`.execute(db)).rows;
  // A worker works on at most 16 projects that share a key.
  await expect.poll(active).toHaveLength(32);
  emulator.fault = undefined;
  releaseAnswers();
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "ok", requests: 40, complete: 80 }]);
  const done = workers.map((worker) => worker.count("usage request done"));
  expect(Math.min(...done)).toBeGreaterThanOrEqual(16);
  expect(breakdowns(emulator)).toHaveLength(40);
});
