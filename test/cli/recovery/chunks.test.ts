// A chunk of 50 requests, whose worker is killed, suspended or meets failures: the service sees what is asked again.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Emulator } from "../../../src/emulator/server.ts";
import { testDatabase } from "../../support/database.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { lastDays } from "../numbers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, coverage, farSchedule, manyFilters, type Run, runs } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const REQUESTS = 50;
/** At most twice the concurrent calls are in the hands of a worker. */
const IN_HAND_MAX = 8;
const WHOLE = { status: "ok", requests: REQUESTS, planned: 2 * REQUESTS, complete: 2 * REQUESTS, failed: 0 };

test("another worker takes up the chunk of a killed one within 40 seconds, and repeats only the requests that were in flight", async ({
  context,
}) => {
  const emulator = await serveChunk(context);
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
  await expect.poll(backfillRun).toMatchObject(WHOLE);

  expect(performance.now() - killedMs).toBeLessThan(40_000 + BUSY_MS);
  const repeated = breakdowns(emulator).length - REQUESTS;
  expect(repeated).toBe(askedBefore - stored);
  expect(repeated).toBeLessThanOrEqual(IN_HAND_MAX);
  await expectStoredOnce();
});

test("a suspended worker that wakes up beside the one that has its chunk now neither stores nor counts anything twice", async ({
  context,
}) => {
  const emulator = await serveChunk(context);
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

  await expect.poll(backfillRun).toMatchObject(WHOLE);
  for (const worker of [sleeper, other]) {
    worker.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ status: 0 });
  }
  expect(await backfillRun()).toMatchObject(WHOLE);
  await expectStoredOnce();
  // The one that woke up does not go on with the chunk, except for what it had in hand. Answers whose transaction was open when it was
  // suspended make room for as many more.
  expect(breakdowns(emulator).length).toBeLessThanOrEqual(REQUESTS + IN_HAND_MAX + IN_HAND_MAX / 2);
});

test("a request that fails for a while is made again later, and the others of its chunk are not", async ({
  context,
}) => {
  const emulator = await serveChunk(context);
  const fails = (path: string) => path.includes("accessor-7&") || path.endsWith("accessor-7");
  emulator.fault = ({ path }) => (fails(path) ? { kind: "answer", status: 503 } : undefined);
  const worker = context.start(["start"]);
  const line = JSON.parse(await worker.waitFor("usage request failed, to be tried again"));
  expect(line).toMatchObject({ code: "unavailable", requests: 1, filter: "accessor 7", attempt: 1 });
  const open = { status: "running", requests: REQUESTS - 1, complete: 2 * (REQUESTS - 1) };
  expect(await backfillRun()).toMatchObject(open);
  // Between the retries the request is in progress for a moment.
  await expect.poll(async () => (await context.run(["status"])).stdout).toContain("1 waiting for a retry");

  emulator.fault = undefined;
  await expect.poll(backfillRun).toMatchObject(WHOLE);
  expect(breakdowns(emulator).filter((path) => !fails(path))).toHaveLength(REQUESTS - 1);
});

test("a chunk whose workers kept dying counts with all of its requests as given up", async ({ context }) => {
  await serveChunk(context);
  await sql`
    update usage_export_queue.job set state = 'active', retry_count = retry_limit, started_on = now(), heartbeat_on = now() - interval '1 minute'
    where name = 'usage_request'
  `.execute(db);
  const worker = context.start(["start"]);
  const line = JSON.parse(await worker.waitFor("usage request given up"));
  expect(line).toMatchObject({ project: "production", grouping: expect.any(String), filter: expect.any(String) });
  await expect.poll(backfillRun).toMatchObject({ status: "failed", requests: REQUESTS, failed: 2 * REQUESTS });
  worker.kill("SIGTERM");
  await worker.ended;
  expect((await context.run(["status"])).stdout).toContain(`${REQUESTS} given up in the last day`);
});

test("the days of requests whose queue jobs were deleted by hand are planned anew at the next tick, or by a backfill", async ({
  context,
}) => {
  await queueChunk(context);
  await sql`delete from usage_export_queue.job`.execute(db);
  const { start, end } = lastDays(2);
  const { stdout } = await context.run(["backfill", "--from", start, "--to", end, "--enqueue"]);
  expect(stdout).toContain(`${REQUESTS} requests`);
  expect(await runs(db)).toMatchObject([{ status: "failed", failed: 2 * REQUESTS }, { status: "running" }]);

  await sql`delete from usage_export_queue.job`.execute(db);
  const worker = context.start(["start"], { LOG_LEVEL: "debug" });
  expect(JSON.parse(await worker.waitFor("tick finished"))).toMatchObject({ started: true });
  expect((await runs(db)).at(-1)).toMatchObject({ trigger: "catchup", status: "running" });
});

test("the end of a run is not reported if its transaction was rolled back and another worker has the chunk by then", async ({
  context,
}) => {
  await serveChunk(context);
  await sql`create sequence ends`.execute(db);
  await sql`create table refusing (ends boolean)`.execute(db);
  await sql`insert into refusing values (true)`.execute(db);
  await sql`
    create function refuse_end() returns trigger language plpgsql as $$
    begin
      perform nextval('public.ends');
      if (select ends from public.refusing) then raise serialization_failure; end if;
      return null;
    end $$
  `.execute(db);
  await sql`
    create constraint trigger refuse_end after update on usage_export.run deferrable initially deferred
    for each row when (new.requests_open = 0 and new.trigger = 'backfill') execute function refuse_end()
  `.execute(db);
  const worker = context.start(["start"]);
  await expect
    .poll(async () => (await sql<{ is_called: boolean }>`select is_called from ends`.execute(db)).rows, {
      interval: 10,
    })
    .toEqual([{ is_called: true }]);
  await sql`
    with claimed as (
      update usage_export_queue.job set retry_count = retry_count + 1, heartbeat_on = now() - interval '1 minute'
      where state = 'active' and name = 'usage_request'
    )
    update refusing set ends = false
  `.execute(db);

  await expect.poll(backfillRun).toMatchObject(WHOLE);
  worker.kill("SIGTERM");
  const { stderr } = await worker.ended;
  const ends = stderr
    .split("\n")
    .filter((line) => /"trigger":"backfill"/.test(line) && line.includes('"run finished"'));
  expect(ends).toHaveLength(1);
});

/** Queues a chunk of 50 requests, before there is a worker. Its job is paused: a scheduled run would ask again for what is stored by then. */
async function serveChunk(context: ProgramContext): Promise<Emulator> {
  const emulator = await queueChunk(context);
  expect(await context.run(["jobs", "pause", "nightly", "--why", "a test"])).toMatchObject({ status: 0 });
  return emulator;
}

async function queueChunk(context: ProgramContext): Promise<Emulator> {
  const emulator = await context.serve({ usage: () => [{ accessor: "accessor-1", endpoint: "listen", requests: 5 }] });
  const job = { schedule: farSchedule(), checkFeatures: "off", filters: manyFilters(REQUESTS) };
  const service = { maxConcurrent: IN_HAND_MAX / 2 };
  await context.configure({ ...smallConfig(emulator.url, { service, exports: [job] }), monitor: { port: 0 } });
  const { start, end } = lastDays(2);
  const { status } = await context.run(["backfill", "--from", start, "--to", end, "--enqueue"]);
  expect(status).toBe(0);
  // A run of so few requests has smaller chunks: the first one gets the requests of all.
  const first = sql`(select (data->>'chunkId')::uuid from usage_export_queue.job order by id limit 1)`;
  await sql`update usage_export.queued_request set chunk_id = ${first}`.execute(db);
  await sql`delete from usage_export_queue.job where (data->>'chunkId')::uuid <> ${first}`.execute(db);
  return emulator;
}

async function backfillRun(): Promise<Run | undefined> {
  return (await runs(db)).find(({ trigger }) => trigger === "backfill");
}

async function expectStoredOnce(): Promise<void> {
  expect(await coverage(db)).toEqual({ complete: 2 * REQUESTS });
  const { rows } = await sql`
    select count(*)::integer as rows, max(revision) as revision from usage_export.snapshot_row
  `.execute(db);
  expect(rows).toEqual([{ rows: 2, revision: 1 }]);
  expect((await sql`select from usage_export.queued_request`.execute(db)).rows).toEqual([]);
  const { rows: requests } = await sql`
    select outcome, count(*)::integer as requests, count(distinct filter)::integer as filters
    from bi.run_requests join bi.runs using (run_id) where trigger = 'backfill' group by outcome
  `.execute(db);
  expect(requests).toEqual([{ outcome: "complete", requests: REQUESTS, filters: REQUESTS }]);
}
