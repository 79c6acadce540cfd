// If an export ends in the middle, in whatever way, nothing is lost: the next export stores what is missing.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { ALL_GROUPINGS, lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { tcpProxy } from "../tcp-proxy.ts";

const database = await testDatabase();
const { db, url } = database;
const test = programTest(database);

/** Eight series of two days each. */
const READING = { groupings: ALL_GROUPINGS, window: lastDays(2) };

// The fault harness kills at every event.
test("killed at its sixth request, an export loses nothing", async ({ context }) => {
  const emulator = await serveMany(context);
  const program = context.start(["export"]);
  await holdAnswersFrom(emulator, 6);
  program.kill("SIGKILL");
  expect(await program.ended).toMatchObject({ status: null });

  await expectNoHalves(context, emulator);
  await expectRecovery(context, emulator);
});

test("on a signal an export stops soon, says that it was stopped, and keeps what it has stored", async ({
  context,
}) => {
  const emulator = await serveMany(context);
  const program = context.start(["export"]);
  await holdAnswersFrom(emulator, 5);
  const stoppedMs = performance.now();
  program.kill("SIGTERM");

  expect(await program.ended).toMatchObject({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });

  expect(performance.now() - stoppedMs).toBeLessThan(BUSY_MS);
  const { rows: runs } = await sql`select status, error, slices_complete from bi.runs`.execute(db);
  const { rows: slices } = await sql<{ status: string; days: number }>`
    select status, count(*)::integer as days from bi.coverage group by "grouping", status order by status
  `.execute(db);
  const complete = slices.filter(({ status }) => status === "complete");
  expect(new Set(slices.map(({ status }) => status))).toEqual(new Set(["complete", "missing"]));
  // Each answer covers two days of a series: both are complete, or both are missing.
  expect(slices.map(({ days }) => days)).toEqual(slices.map(() => 2));
  expect(runs).toEqual([{ status: "stopped", error: "stopped by SIGTERM", slices_complete: 2 * complete.length }]);
  await expectRecovery(context, emulator);
});

test("an export whose answers come late does not undo a later one", async ({ context }) => {
  let requests = 5;
  const emulator = await context.serve({ usage: () => [{ endpoint: "listen", requests }] });
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ALL_GROUPINGS }] }));
  const slow = context.start(["export"]);
  // The slow export will get the numbers that the service had when the request came.
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  emulator.fault = undefined;
  requests = 6;
  await expectRecovery(context, emulator);
  releaseAnswers();

  expect(await slow.ended).toMatchObject({ status: 0 });

  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
});

test("an export waits for a database that can't be reached for some seconds", async ({ context }) => {
  await using lost = await loseDatabase(context);
  setTimeout(lost.proxy.restore, 3_000);

  expect(await lost.program.ended).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(lost.emulator, context.key, READING));
});

test("an export whose database does not answer stops within 30 seconds after a signal", async ({ context }) => {
  const emulator = await serveMany(context);
  await using proxy = await tcpProxy(url);
  const program = context.start(["export"], { DATABASE_URL: proxy.url });
  const releaseAnswers = await holdAnswersFrom(emulator, 4);
  proxy.silence();
  releaseAnswers();
  const stoppedMs = performance.now();
  program.kill("SIGTERM");

  const { status, stderr } = await program.ended;

  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });
  expect(performance.now() - stoppedMs).toBeLessThan(30_000 + BUSY_MS);
  await expectRecovery(context, emulator);
});

/** An export in the middle of its run, whose database has just become unreachable. */
async function loseDatabase(context: ProgramContext) {
  const emulator = await serveMany(context);
  const proxy = await tcpProxy(url);
  const program = context.start(["export"], { DATABASE_URL: proxy.url });
  const releaseAnswers = await holdAnswersFrom(emulator, 4);
  proxy.cut();
  releaseAnswers();
  await program.waitFor("database connection lost");
  return { emulator, proxy, program, [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() };
}

async function serveMany(context: ProgramContext): Promise<Emulator> {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ALL_GROUPINGS }] }));
  return emulator;
}

/** For each series, either the whole answer is stored or nothing. */
async function expectNoHalves(context: ProgramContext, emulator: Emulator): Promise<void> {
  emulator.fault = undefined;
  const served = await servedNumbers(emulator, context.key, READING);
  const stored = await storedNumbers(db, READING);
  for (const [series, rows] of Object.entries(stored)) expect([[], served[series]]).toContainEqual(rows);
}

/** After one ordinary export, the stored numbers are those of the service. */
async function expectRecovery(context: ProgramContext, emulator: Emulator): Promise<void> {
  emulator.fault = undefined;
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
  const { rows } = await sql`select status, count(*)::integer as slices from bi.coverage group by status`.execute(db);
  expect(rows).toEqual([{ status: "complete", slices: 16 }]);
}
