// A project with 50 requests, whose worker is killed or meets failures: the service sees what is asked again.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, coverage, farSchedule, manyFilters, runs, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const REQUESTS = 50;
/** At most twice the concurrent calls are in the hands of a worker. */
const IN_HAND_MAX = 8;
const WHOLE = { status: "ok", planned: 2 * REQUESTS, complete: 2 * REQUESTS, failed: 0 };

test("another worker takes up the project of a killed one within 40 seconds, and repeats only the requests that were in flight", async ({
  context,
}) => {
  const emulator = await serveProject(context);
  const killed = context.start(["start"]);
  await holdAnswersFrom(emulator, 20);
  killed.kill("SIGKILL");
  await killed.ended;
  const killedMs = performance.now();
  const askedBefore = breakdowns(emulator).length;
  const stored = ((await coverage(db)).complete ?? 0) / 2;
  expect(stored).toBeGreaterThan(10);

  emulator.fault = undefined;
  context.start(["start"]);
  expect(await waitForRuns(db, 1)).toMatchObject([WHOLE]);

  expect(performance.now() - killedMs).toBeLessThan(40_000 + BUSY_MS);
  const repeated = breakdowns(emulator).length - REQUESTS;
  expect(repeated).toBe(askedBefore - stored);
  expect(repeated).toBeLessThanOrEqual(IN_HAND_MAX);
  await expectStoredOnce();
});

test("a suspended worker that wakes up beside the one that has its project now stores and counts nothing twice", async ({
  context,
}) => {
  const emulator = await serveProject(context);
  const sleeper = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 20);
  sleeper.kill("SIGSTOP");
  const askedBefore = breakdowns(emulator).length;
  // Slow, so that the sleeper has time to do something wrong.
  emulator.fault = () => ({ kind: "delay", delayMs: 1_500 });
  releaseAnswers();
  const other = context.start(["start"]);
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(askedBefore + 5);
  sleeper.kill("SIGCONT");

  expect(await waitForRuns(db, 1)).toMatchObject([WHOLE]);
  for (const worker of [sleeper, other]) {
    worker.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ status: 0 });
  }
  expect(await runs(db)).toMatchObject([WHOLE]);
  await expectStoredOnce();
});

test("a request that fails for a while is made again later, and the others of its project are not", async ({
  context,
}) => {
  const emulator = await serveProject(context);
  const fails = (path: string) => path.includes("accessor-7&") || path.endsWith("accessor-7");
  emulator.fault = ({ path }) => (fails(path) ? { kind: "answer", status: 503 } : undefined);
  const worker = context.start(["start"]);
  const line = JSON.parse(await worker.waitFor("requests failed, to be tried again"));
  expect(line).toMatchObject({ code: "unavailable", filter: "accessor 7", attempt: 1, attempts: 8 });
  expect(await runs(db)).toMatchObject([{ status: "running", requests: REQUESTS }]);

  emulator.fault = undefined;
  expect(await waitForRuns(db, 1)).toMatchObject([WHOLE]);
  expect(breakdowns(emulator).filter((path) => !fails(path))).toHaveLength(REQUESTS - 1);
});

test("a run whose workers kept dying is ended, and another one reads its days", async ({ context }) => {
  const emulator = await serveProject(context);
  const killed = context.start(["start"]);
  await holdAnswersFrom(emulator, 20);
  killed.kill("SIGKILL");
  await killed.ended;
  emulator.fault = undefined;
  await sql`update usage_export_queue.job set retry_count = retry_limit, heartbeat_on = now() - interval '1 minute'`.execute(
    db,
  );
  context.start(["start"]);
  await expect
    .poll(async () => (await sql`select from usage_export_queue.job where state = 'failed'`.execute(db)).rows.length)
    .toBe(1);
  // A starting worker ticks at once. Without one, the next tick would come within a minute.
  context.start(["start"]);
  expect(await waitForRuns(db, 2)).toMatchObject([{ status: "failed" }, { trigger: "catchup", status: "ok" }]);
  expect(await coverage(db)).toEqual({ complete: 2 * REQUESTS });
});

/** One project with 50 series of two days. */
async function serveProject(context: ProgramContext): Promise<Emulator> {
  const emulator = await context.serve({ usage: () => [{ accessor: "accessor-1", endpoint: "listen", requests: 5 }] });
  const job = { schedule: farSchedule(), checkFeatures: "off", filters: manyFilters(REQUESTS) };
  const service = { maxConcurrent: IN_HAND_MAX / 2 };
  await context.configure({ ...smallConfig(emulator.url, { service, exports: [job] }), monitor: { port: 0 } });
  return emulator;
}

async function expectStoredOnce(): Promise<void> {
  expect(await coverage(db)).toEqual({ complete: 2 * REQUESTS });
  const { rows } = await sql`
    select count(*)::integer as rows, max(revision) as revision from usage_export.snapshot_row
  `.execute(db);
  expect(rows).toEqual([{ rows: 2, revision: 1 }]);
}
