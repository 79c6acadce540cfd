// Whatever ends an export in the middle, the next one stores what is missing. A key file that can't be read fails only its own project.

import { spawnSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import type { Emulator } from "../../support/emulator.ts";
import { forgetSequences } from "../../support/forget-sequences.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { silenceFolder } from "../../support/silent-folder.ts";
import { coverage, holdAnswersFrom, statusBy } from "../evidence.ts";
import { ALL_GROUPINGS, lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { PRODUCTION } from "../small-config.ts";

const { test, db, url } = await databaseTest();

/** Eight series of two days each. */
const READING = { groupings: ALL_GROUPINGS, window: lastDays(2) };

test("an export that a signal stops keeps what it has stored", async ({ context }) => {
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
  const emulator = await context.setUp(
    { exports: [{ groupings: ALL_GROUPINGS }] },
    { usage: () => [{ endpoint: "listen", requests }] },
  );
  const slow = context.run(["export"]);
  // The slow export will get the numbers that the service had when the request came.
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  emulator.fault = undefined;
  requests = 6;
  await expectRecovery(context, emulator);
  releaseAnswers();

  expect(await slow).toMatchObject({ status: 0 });

  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
});

test("an export waits for a database that can't be reached for some seconds", async ({ context }) => {
  const emulator = await serveMany(context);
  await using proxy = await startPostgresFront(url);
  const program = context.start(["export"], { DATABASE_URL: proxy.url });
  const releaseAnswers = await holdAnswersFrom(emulator, 4);
  proxy.cut();
  releaseAnswers();
  await program.waitFor("database connection lost");
  // An export that does not wait gives up after fewer attempts to connect.
  await expect.poll(proxy.refused).toBeGreaterThan(20);
  proxy.restore();
  expect(await program.ended).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
});

test("an export whose database does not answer stops within 30 seconds after a signal", async ({ context }) => {
  const emulator = await serveMany(context);
  await using proxy = await startPostgresFront(url);
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

// Logical replication moves all rows of all tables, but the sequences start anew.
test("migrate or an export raises sequences that a move of the database has reset", async ({ context }) => {
  let usage = [{ endpoint: "listen", requests: 5 }];
  const emulator = await context.setUp({ exports: [{ groupings: ["none", "endpoint"] }] }, { usage: () => usage });
  for (const _ of [1, 2, 3]) expect(await context.run(["export"])).toMatchObject({ status: 0 });
  await forgetSequences(db);
  expect(await context.run(["migrate"])).toMatchObject({ status: 0, stderr: expect.stringContaining("were raised") });
  expect((await context.run(["export"])).stderr).not.toContain("sequences were behind");

  await forgetSequences(db);
  usage = [
    { endpoint: "listen", requests: 6 },
    { endpoint: "speak", requests: 3 },
  ];
  const { status, stdout, stderr } = await context.run(["export"]);
  // On each of the two days the total and listen change, and speak is new.
  expect(stdout).toMatch(/^nightly: 2 requests, 4 slices complete, 0 suspect, 0 failed; 6 rows changed\n$/);
  expect(stderr).toContain("sequences were behind what is stored");
  expect(status).toBe(0);
  const reading = { groupings: ["none", "endpoint"], window: lastDays(2) };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
});

const serveMany = (context: ProgramContext) => context.setUp({ exports: [{ groupings: ALL_GROUPINGS }] });

/** After one ordinary export, the stored numbers are those of the service. */
async function expectRecovery(context: ProgramContext, emulator: Emulator): Promise<void> {
  emulator.fault = undefined;
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
  expect(await coverage(db)).toEqual({ complete: 16 });
}

const DRAIN_SECONDS = 8;
const STAGING = { id: "staging-1", name: "staging", key: { file: "share/staging.key" } };

const SILENCE = "could not be read: its file system does not answer";

/** Serves and configures two projects, of which staging has its key in a file. */
async function serveBoth(context: ProgramContext) {
  await mkdir(path.join(context.folder, "share"));
  const secret = context.newSecret({ allowedIn: "share/staging.key" });
  await writeFile(path.join(context.folder, "share/staging.key"), secret);
  const jobs = { projects: [PRODUCTION, STAGING], exports: [{ projects: ["production", "staging"] }] };
  await context.setUp(
    { ...jobs, worker: { drainSeconds: DRAIN_SECONDS } },
    { consoleKeys: [{ secret, projectId: STAGING.id, scopes: ["member"] }] },
  );
}

const COMPLETE = { status: "complete", error: null };
/** A key that can't be read does not hold up the other project. */
const ONE_FAILED = { production: COMPLETE, staging: { status: "failed", error: expect.stringContaining(SILENCE) } };

test("a key on a file system that does not answer fails only its own project", async ({ context, skip }) => {
  await serveBoth(context);
  using silence = silenceFolder(path.join(context.folder, "share"));
  if (!silence) return skip("needs root and /dev/fuse");
  const startedMs = performance.now();
  const exported = await context.start(["export"]).ended;
  expect(exported).toMatchObject({ status: 1, stdout: expect.stringContaining(SILENCE) });
  expect(performance.now() - startedMs).toBeLessThan(30_000 + BUSY_MS);
  expect(await statusBy(db, "project")).toEqual(ONE_FAILED);
  expect((await context.start(["status"]).ended).stdout).toContain(SILENCE);
});

test("a worker goes on with other projects if the file system of a key does not answer", async ({ context, skip }) => {
  await serveBoth(context);
  using silence = silenceFolder(path.join(context.folder, "share"));
  if (!silence) return skip("needs root and /dev/fuse");
  const worker = context.start(["start"]);
  await expect.poll(() => statusBy(db, "project")).toEqual(ONE_FAILED);
  const stoppedMs = performance.now();
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(performance.now() - stoppedMs).toBeLessThan(DRAIN_SECONDS * 1000 + BUSY_MS);
});

test("a key file that is a pipe fails only its own project", async ({ context }) => {
  await serveBoth(context);
  const file = path.join(context.folder, "share/staging.key");
  await rm(file);
  spawnSync("mkfifo", [file]);
  const exported = await context.run(["export"]);
  expect(exported).toMatchObject({ status: 1, stdout: expect.stringContaining("staging.key is not a regular file") });
  expect(await statusBy(db, "project")).toMatchObject({ production: COMPLETE });
});
