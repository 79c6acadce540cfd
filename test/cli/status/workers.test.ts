// `status` says that all is well only while workers do the work: it shows the workers, and since when a job is overdue that none of
// them has taken up.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { serveAndConfigure, waitForRuns, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

/** Moves the stored times back, as if this time had passed without any worker. */
async function passMinutes(minutes: number): Promise<void> {
  const ago = sql`make_interval(mins => ${minutes})`;
  await sql`update usage_export.job set scheduled_through = scheduled_through - ${ago}`.execute(db);
  await sql`update usage_export.worker set last_seen_at = last_seen_at - ${ago}`.execute(db);
}

test("a live worker is shown with its host, process and version, and all is well", async ({ context }) => {
  await serveAndConfigure(context);
  const worker = context.start(["start"]);
  await waitForRuns(db, 1);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(/^all is well\n/);
  expect(stdout).toMatch(
    new RegExp(`^workers: 1 live\n {2}\\S+ pid ${worker.pid}, version \\S+, started .*, last seen `, "m"),
  );
  expect(status).toBe(0);
});

test("a job that is due every minute is overdue if no worker runs, although its newest scheduled time is new", async ({
  context,
}) => {
  await serveAndConfigure(context, { exports: [{ schedule: "* * * * *" }] });
  const worker = context.start(["start"]);
  await waitForRuns(db, 1);
  worker.kill("SIGKILL");
  await worker.ended;
  await passMinutes(4);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(/^ {2}no worker runs, so nothing is done on schedule: the last one, \S+ pid \d+, was seen /m);
  expect(stdout).toMatch(/^ {2}overdue since .*: no worker has taken it up$/m);
  expect(stdout).toMatch(/^workers: 0 live\n {2}.*, silent since /m);
  expect(status).toBe(1);
});

test("two minutes after the last worker stopped, its jobs are an alert until they are paused", async ({ context }) => {
  await serveAndConfigure(context);
  await workOnce(context, db);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
  await sql`update usage_export.worker set last_seen_at = last_seen_at - interval '121 seconds'`.execute(db);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toContain("no worker runs");
  expect(stdout).toMatch(/^workers: none runs; the last one was \S+ pid \d+, .*, stopped /m);
  expect(status).toBe(1);

  await context.run(["jobs", "pause", "nightly", "--why", "run by cron"]);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});

test("without any worker all is well if another scheduler runs the exports", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(/^all is well\n/);
  expect(stdout).toContain("workers: none was ever seen; nothing runs by itself until one is started");
  expect(status).toBe(0);
});

test("after a failed run, all is well again once a backfill has read the failed days", async ({ context }) => {
  const emulator = await context.serve({ fault: () => ({ kind: "body", change: () => ({}) }) });
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  emulator.fault = undefined;
  const { rows } = await sql<{ from: string; to: string }>`
    select min(usage_date)::text as from, max(usage_date)::text as to from bi.coverage
  `.execute(db);
  const [{ from, to } = { from: "", to: "" }] = rows;
  await context.run(["backfill", "--only", "failed", "--from", from, "--to", to]);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});
