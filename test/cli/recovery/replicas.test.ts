// Several workers on one database share the jobs, stay within the limits of the service together, and claim the jobs of a killed worker.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Emulator } from "../../../src/emulator/server.ts";
import { testDatabase } from "../../support/database.ts";
import { BUSY_MS } from "../../support/limits.ts";
import type { Program } from "../../support/program.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, coverage, farSchedule, manyFilters, runs, serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const GROUPINGS = ["none", "endpoint", "method", "model", "deployment", "accessor"];
/** 6 groupings under 50 filters are 300 requests. */
const MANY = { groupings: GROUPINGS, checkFeatures: "off", filters: manyFilters(50) };
const ONE_ROW_EACH = Array.from({ length: 50 }, (_, i) => ({
  ...{ accessor: `accessor-${i}`, endpoint: "listen", method: "sync", model: ["m"], deployment: "hosted" },
  requests: i + 1,
}));
const DELAY_MS = 60;

test("three workers make 300 requests once each, within the caps", async ({ context }) => {
  const emulator = await serveMany(context);
  startWorkers(context, 3);
  const [run] = await waitForRuns(db, 1);
  expect(run).toMatchObject({ status: "ok", requests: 300, planned: 600, complete: 600, failed: 0 });
  await expectEachOnce(emulator);
  expectCapsKept(emulator);
});

test("two workers divide the projects of a run", async ({ context }) => {
  const ids = Array.from({ length: 40 }, (_, i) => `divided-${i}`);
  const secret = context.newSecret();
  const emulator = await context.serve({
    projects: () => ids.map((id) => ({ id, name: id })),
    consoleKeys: [{ secret, projectId: "divided-0", scopes: ["member"], isAccountKey: true }],
  });
  const projects = ids.map((id) => ({ id, name: id, key: { env: "ACCOUNT_KEY" } }));
  const exports = [{ projects: ["*"], schedule: farSchedule() }];
  await context.configure({ ...smallConfig(emulator.url, { projects, exports }), monitor: { port: 0 } });
  const env = { ACCOUNT_KEY: secret, USAGE_EXPORT_KEY: undefined, LOG_LEVEL: "debug" };
  const workers = [1, 2].map(() => context.start(["start"], env));
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  const active = async () =>
    (await sql`select from usage_export_queue.job where state = 'active'`.execute(db)).rows.length;
  // A worker has up to 16 projects of a key.
  await expect.poll(active).toBe(32);
  emulator.fault = undefined;
  releaseAnswers();
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "ok", requests: 40, complete: 80 }]);
  const done = workers.map((worker) => worker.count("usage request done"));
  expect(Math.min(...done)).toBeGreaterThanOrEqual(16);
  expect(breakdowns(emulator)).toHaveLength(40);
});

test("other workers do the jobs of a killed worker within 40 seconds, and store no number twice", async ({
  context,
}) => {
  const emulator = await serveMany(context);
  const [killed] = startWorkers(context, 1);
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(100);
  startWorkers(context, 2);
  killed?.kill("SIGKILL");
  const killedMs = performance.now();
  const [run] = await waitForRuns(db, 1);
  expect(performance.now() - killedMs).toBeLessThan(40_000 + BUSY_MS);
  // A run does not count the requests of a killed worker.
  expect(run).toMatchObject({ status: "ok", planned: 600, complete: 600, failed: 0 });
  // At most the requests that the killed worker had claimed were made again.
  const counts = Map.groupBy(breakdowns(emulator), (path) => path);
  expect(counts.size).toBe(300);
  expect(breakdowns(emulator).length).toBeLessThanOrEqual(300 + 8);
  expectCapsKept(emulator);
  expect(await coverage(db)).toEqual({ complete: 600 });
  const { rows } = await sql`
    select count(*)::integer as rows, max(revision) as revision, sum(requests)::integer as requests from bi.usage_filtered
  `.execute(db);
  // 6 groupings and 2 days of 1 to 50 requests.
  expect(rows).toEqual([{ rows: 600, revision: 1, requests: 6 * 2 * ((50 * 51) / 2) }]);
});

test("a worker that was suspended does not overwrite newer numbers when it continues", async ({ context }) => {
  let requests = 5;
  const emulator = await serveAndConfigure(context, {}, { usage: () => [{ endpoint: "listen", requests }] });
  const sleeper = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  sleeper.kill("SIGSTOP");
  // The suspended worker will get the numbers that the service had when the request came.
  emulator.fault = undefined;
  releaseAnswers();
  requests = 6;
  const other = context.start(["start"]);
  const [run] = await waitForRuns(db, 1);
  expect(run).toMatchObject({ status: "ok", requests: 1, complete: 2 });
  sleeper.kill("SIGCONT");
  sleeper.kill("SIGTERM");
  expect(await sleeper.ended).toMatchObject({ status: 0 });
  other.kill("SIGTERM");
  await other.ended;
  const reading = { groupings: ["none"], window: lastDays(2) };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
  expect(await runs(db)).toHaveLength(1);
});

async function serveMany(context: ProgramContext): Promise<Emulator> {
  const service = { maxConcurrent: 4, requestsPerSecond: 40 };
  const emulator = await serveAndConfigure(context, { service, exports: [MANY] }, { usage: () => ONE_ROW_EACH });
  emulator.fault = () => ({ kind: "delay", delayMs: DELAY_MS });
  return emulator;
}

function startWorkers(context: ProgramContext, count: number): readonly Program[] {
  return Array.from({ length: count }, () => context.start(["start"], { LOG_LEVEL: "debug" }));
}

async function expectEachOnce(emulator: Emulator): Promise<void> {
  const asked = breakdowns(emulator);
  expect(new Set(asked).size).toBe(300);
  expect(asked).toHaveLength(300);
}

/** Checks the concurrent requests and their rate as the service saw them. */
function expectCapsKept({ requests }: Emulator): void {
  const times = requests.map(({ receivedAt }) => receivedAt.getTime()).sort((a, b) => a - b);
  // A request is in flight at least from its arrival until its answer is sent, DELAY_MS later.
  const atOnce = times.map((time, i) => times.slice(0, i + 1).filter((other) => other > time - DELAY_MS).length);
  expect(Math.max(...atOnce)).toBeLessThanOrEqual(4);
  // 40 in any second, and up to 4 that arrive late.
  const inASecond = times.map((time, i) => times.slice(i).filter((other) => other < time + 1000).length);
  expect(Math.max(...inASecond)).toBeLessThanOrEqual(44);
}
