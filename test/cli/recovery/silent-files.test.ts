// A key file or a configuration that can't be read: a pipe that nobody writes to, and a file system that does not answer.

import { spawnSync } from "node:child_process";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { silenceFolder } from "../../support/silent-folder.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";
import { farSchedule, serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const DRAIN_SECONDS = 8;
const STAGING = { id: "staging-1", name: "staging", key: { file: "share/staging.key" } };

const SILENCE = "could not be read: its file system does not answer";

/** Serves and configures two projects, of which staging has its key in a file. */
async function serveBoth(context: ProgramContext) {
  await mkdir(path.join(context.folder, "share"));
  const secret = context.newSecret("share/staging.key");
  await writeFile(path.join(context.folder, "share/staging.key"), secret);
  await serveAndConfigure(
    context,
    {
      exports: [{ projects: ["production", "staging"] }],
      rest: { projects: [PRODUCTION, STAGING], worker: { drainSeconds: DRAIN_SECONDS } },
    },
    { consoleKeys: [{ secret, projectId: STAGING.id, scopes: ["member"] }] },
  );
}

async function replaceByPipe(file: string): Promise<void> {
  await rm(file);
  spawnSync("mkfifo", [file]);
}

async function slicesOf(project: string) {
  const { rows } = await sql<{ status: string; error: string }>`
    select distinct status, error from bi.coverage where project = ${project}
  `.execute(db);
  return rows;
}

const FAILED = [{ status: "failed", error: expect.stringContaining(SILENCE) }];
const COMPLETE = [{ status: "complete", error: null }];

test("a key on a file system that does not answer fails its own project, and no command waits for it", async ({
  context,
  skip,
}) => {
  await serveBoth(context);
  using silence = silenceFolder(path.join(context.folder, "share"));
  if (!silence) return skip("needs root and /dev/fuse");
  const exported = await context.start(["export"]).ended;
  expect(exported).toMatchObject({ status: 1, stdout: expect.stringContaining(SILENCE) });
  expect(exported.durationMs).toBeLessThan(BUSY_MS);
  expect([await slicesOf("production"), await slicesOf("staging")]).toEqual([COMPLETE, FAILED]);
  expect((await context.start(["status"]).ended).stdout).toContain(SILENCE);
});

test("a worker works on without a key whose file system does not answer, and ends in time", async ({
  context,
  skip,
}) => {
  await serveBoth(context);
  using silence = silenceFolder(path.join(context.folder, "share"));
  if (!silence) return skip("needs root and /dev/fuse");
  const worker = context.start(["start"]);
  await expect.poll(() => slicesOf("production")).toEqual(COMPLETE);
  await expect.poll(() => slicesOf("staging")).toEqual(FAILED);
  const stoppedMs = performance.now();
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
  expect(performance.now() - stoppedMs).toBeLessThan(DRAIN_SECONDS * 1000 + BUSY_MS);
});

test("a key file that is there and can't be read, such as a pipe, fails its own project", async ({ context }) => {
  await serveBoth(context);
  await replaceByPipe(path.join(context.folder, "share/staging.key"));
  const exported = await context.start(["export"]).ended;
  expect(exported).toMatchObject({ status: 1, stdout: expect.stringContaining("staging.key is not a regular file") });
  expect(await slicesOf("production")).toEqual(COMPLETE);
});

test("a worker takes up a configuration after one that could not be read", async ({ context }) => {
  const emulator = await serveAndConfigure(context);
  const worker = context.start(["start"]);
  await waitForRuns(db, 1);
  const file = path.join(context.folder, "jobs.config.json");
  await replaceByPipe(file);
  await worker.waitFor("jobs.config.json is not a regular file");
  const changed = {
    ...smallConfig(emulator.url, { exports: [{ schedule: farSchedule(), name: "changed" }] }),
    monitor: { port: 0 },
  };
  await writeFile(`${file}.new`, JSON.stringify(changed));
  await rename(`${file}.new`, file);
  await worker.waitFor("the configuration has changed and is taken up");
});
