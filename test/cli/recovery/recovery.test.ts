// An export that ends in the middle, in whatever way, costs nothing but the time of the next one.

import { sql } from "kysely";
import pg from "pg";
import { expect, onTestFinished } from "vitest";
import type { Emulator } from "../../../src/emulator/server.ts";
import { testDatabase } from "../../support/database.ts";
import { ALL_GROUPINGS, lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { reached } from "../reached.ts";
import { smallConfig } from "../small-config.ts";
import { tcpProxy } from "../tcp-proxy.ts";
import { type World, worldTest } from "../world.ts";

const database = await testDatabase();
const { db, url } = database;
const test = worldTest(database);

/** Eight series of two days each. */
const READING = { groupings: ALL_GROUPINGS, window: lastDays(2) };

/** A database administrator's connection. */
async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

test.for([1, 3, 6, 8])("killed at its request number %i, an export loses nothing", async (number, { world }) => {
  const emulator = await serveMany(world);
  const program = world.start(["export"]);
  await reached(emulator, number);
  program.kill("SIGKILL");
  expect(await program.ended).toMatchObject({ status: null });

  await expectNoHalves(world, emulator);
  await expectToHeal(world, emulator);
});

test("killed while it stores an answer, an export leaves no half of it", async ({ world }) => {
  const emulator = await serveMany(world);
  const admin = await connect();
  await admin.query(`
    create function public.wait_here() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(1); return null; end
    $$;
    create trigger wait_here before update on usage_export.slice execute function public.wait_here();
    select pg_advisory_lock(1)
  `);
  const program = world.start(["export"]);
  // Rows are written, what became of their slices is not.
  await expect.poll(() => waitingForLock(), { timeout: 20_000 }).toBeGreaterThan(0);
  program.kill("SIGKILL");
  await program.ended;
  await admin.query(
    "select pg_advisory_unlock(1); drop trigger wait_here on usage_export.slice; drop function public.wait_here()",
  );

  await expectNoHalves(world, emulator);
  await expectToHeal(world, emulator);
});

test("told to end, an export ends soon, says that it was stopped, and keeps what it has", async ({ world }) => {
  const emulator = await serveMany(world);
  const program = world.start(["export"]);
  await reached(emulator, 5);
  const toldMs = performance.now();
  program.kill("SIGTERM");

  expect(await program.ended).toMatchObject({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });

  expect(performance.now() - toldMs).toBeLessThan(5_000);
  const { rows: runs } = await sql`select status, error, slices_complete from bi.runs`.execute(db);
  const { rows: slices } = await sql<{ status: string; days: number }>`
    select status, count(*)::integer as days from bi.coverage group by "grouping", status order by status
  `.execute(db);
  const complete = slices.filter(({ status }) => status === "complete");
  expect(new Set(slices.map(({ status }) => status))).toEqual(new Set(["complete", "missing"]));
  // Both days of a series, or none.
  expect(slices.map(({ days }) => days)).toEqual(slices.map(() => 2));
  expect(runs).toEqual([{ status: "stopped", error: "stopped by SIGTERM", slices_complete: 2 * complete.length }]);
  await expectToHeal(world, emulator);
});

test.for([2, 3])("%i exports at once store each number once", async (count, { world }) => {
  const emulator = await serveMany(world);

  const results = await Promise.all(Array.from({ length: count }, () => world.run(["export"])));

  expect(results.map(({ status }) => status)).toEqual(results.map(() => 0));
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, world.key, READING));
  const { rows } = await sql`select max(revision) from usage_export.snapshot_row`.execute(db);
  expect(rows).toEqual([{ max: 1 }]);
});

test("an export whose answers come late does not undo a later one", async ({ world }) => {
  let requests = 5;
  const emulator = await world.serve({ usage: () => [{ endpoint: "listen", requests }] });
  await world.configure(smallConfig(emulator.url, { exports: [{ groupings: ALL_GROUPINGS }] }));
  const slow = world.start(["export"]);
  // What the service knew when it was asked is what it will answer.
  const goOn = await reached(emulator, 1);
  emulator.fault = undefined;
  requests = 6;
  await expectToHeal(world, emulator);
  goOn();

  expect(await slow.ended).toMatchObject({ status: 0 });

  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, world.key, READING));
});

test("an export outlives the loss of its connections to the database", async ({ world }) => {
  const emulator = await serveMany(world);
  const admin = await connect();
  const program = world.start(["export"]);
  const goOn = await reached(emulator, 4);
  await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  goOn();

  expect(await program.ended).toMatchObject({ status: 0 });
  await expectToHeal(world, emulator);
});

test("an export waits for a database that goes away for some seconds", async ({ world }) => {
  await using lost = await loseDatabase(world);
  setTimeout(lost.proxy.mend, 3_000);

  expect(await lost.program.ended).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(lost.emulator, world.key, READING));
});

test("an export that waits for its database ends when it is told to", async ({ world }) => {
  await using lost = await loseDatabase(world);
  lost.program.kill("SIGTERM");

  const { status, stderr, durationMs } = await lost.program.ended;

  expect(status).toBe(1);
  expect(stderr.trimEnd().split("\n").at(-1)).toBe("usage-export: stopped by SIGTERM");
  expect(durationMs).toBeLessThan(20_000);
  await expectToHeal(world, lost.emulator);
});

test("an export whose database says nothing any more ends when it is told to, if not at once", async ({ world }) => {
  const emulator = await serveMany(world);
  await using proxy = await tcpProxy(url);
  const program = world.start(["export"], { DATABASE_URL: proxy.url });
  const goOn = await reached(emulator, 4);
  proxy.swallow();
  goOn();
  const toldMs = performance.now();
  program.kill("SIGTERM");

  const { status, stderr } = await program.ended;

  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });
  expect(performance.now() - toldMs).toBeLessThan(30_000);
  await expectToHeal(world, emulator);
}, 120_000);

/** An export in the middle of its run, whose database has just gone away. */
async function loseDatabase(world: World) {
  const emulator = await serveMany(world);
  const proxy = await tcpProxy(url);
  const program = world.start(["export"], { DATABASE_URL: proxy.url });
  const goOn = await reached(emulator, 4);
  proxy.cut();
  goOn();
  await program.waitFor("database connection lost");
  return { emulator, proxy, program, [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() };
}

async function serveMany(world: World): Promise<Emulator> {
  const emulator = await world.serve();
  await world.configure(smallConfig(emulator.url, { exports: [{ groupings: ALL_GROUPINGS }] }));
  return emulator;
}

async function waitingForLock(): Promise<number> {
  const { rows } = await sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `.execute(db);
  return rows.length;
}

/** Of each series there is all of the answer, or nothing. */
async function expectNoHalves(world: World, emulator: Emulator): Promise<void> {
  emulator.fault = undefined;
  const served = await servedNumbers(emulator, world.key, READING);
  const stored = await storedNumbers(db, READING);
  for (const [series, rows] of Object.entries(stored)) expect([[], served[series]]).toContainEqual(rows);
}

/** One ordinary run, and all is as the service says. */
async function expectToHeal(world: World, emulator: Emulator): Promise<void> {
  emulator.fault = undefined;
  expect(await world.run(["export"])).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, world.key, READING));
  const { rows } = await sql`select status, count(*)::integer as slices from bi.coverage group by status`.execute(db);
  expect(rows).toEqual([{ status: "complete", slices: 16 }]);
}
