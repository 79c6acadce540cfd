// Several workers on one database share the jobs, stay within the limits of the service together, and claim the jobs of a killed worker.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import type { Program } from "../../support/program.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, farSchedule, manyFilters, serveAndConfigure, waitForRuns } from "../workers.ts";

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
