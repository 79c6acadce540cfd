// The worker as it runs every night: due days are read, missed ones are caught up, paused jobs are left alone, due keys are rotated.

import os from "node:os";
import { sql } from "kysely";
import { expect } from "vitest";
import { runLine } from "../../../src/worker/handle-project.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { breakdowns, coverage, runs, waitForRuns, workOnce } from "../evidence.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { databaseTest } from "../program-context.ts";
import { farSchedule, PRODUCTION } from "../small-config.ts";

const { test, db } = await databaseTest();

test("a worker that starts for the first time reads all due days at once", async ({ context }) => {
  const emulator = await context.setUp();
  const worker = context.work();
  const counts = { requests: 1, planned: 2, complete: 2, failed: 0 };
  const run = { kind: "export", job: "nightly", trigger: "catchup", status: "ok", ...counts };
  expect(await waitForRuns(db, 1)).toEqual([expect.objectContaining(run)]);
  const reading = { groupings: ["none"], window: lastDays(2) };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
  const logged = { ...run, level: 30, seconds: expect.any(Number), suspect: 0, rowsChanged: 2 };
  expect(JSON.parse(await worker.waitFor("run finished"))).toMatchObject(logged);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0, stdout: "" });
});

test("after three days without a worker, one tick reads all missing days", async ({ context }) => {
  await context.setUp({ exports: [{ window: { days: 1 } }] });
  await workOnce(context, db);
  await ageStoredData(db, 3);
  expect(await coverage(db)).toEqual({ complete: 1, missing: 3 });
  context.work();
  const [, second, ...others] = await waitForRuns(db, 2);
  expect(second).toMatchObject({ trigger: "catchup", status: "ok", planned: 3, complete: 3 });
  expect(others).toEqual([]);
  expect(await coverage(db)).toEqual({ complete: 4 });
});

test("without a window the days of missed runs stay missing", async ({ context }) => {
  await context.setUp({ exports: [{ window: undefined, undated: "day" }] }, { window: "undated" });
  await workOnce(context, db);
  await ageStoredData(db, 3);
  context.work();
  const [, second] = await waitForRuns(db, 2);
  expect(second).toMatchObject({ trigger: "catchup", status: "ok", planned: 1 });
  expect(await coverage(db)).toEqual({ complete: 2, missing: 2 });
});

test.for([["start"], ["export"]])("%s deletes runs that are older than keepDays", async ([command], { context }) => {
  await context.setUp({ runs: { keepDays: 30 } });
  await workOnce(context, db);
  await sql`
    insert into usage_export.run (run_id, kind, job, trigger, status, started_at, heartbeat_at)
    select gen_random_uuid(), 'export', 'nightly', 'catchup', 'ok', at, at
    from (values (now() - interval '31 days'), (now() - interval '29 days')) as moment (at)
  `.execute(db);
  if (command === "start") await workOnce(context, db);
  else expect(await context.run(["export"])).toMatchObject({ status: 0 });
  // Only the run of 29 days ago is left.
  const { rows } = await sql`select from usage_export.run where started_at < now() - interval '1 day'`.execute(db);
  expect(rows).toHaveLength(1);
});

test("a paused job does not run until it is resumed", async ({ context }) => {
  const emulator = await context.setUp({ exports: [{ window: { days: 1 } }] });
  await workOnce(context, db);
  await ageStoredData(db, 2);
  const asked = breakdowns(emulator).length;
  const paused = await context.run(["jobs", "pause", "nightly", "--why", "the vendor moves house"]);
  expect(paused).toMatchObject({ status: 0, stdout: expect.stringContaining("the vendor moves house") });
  await workOnce(context, db);
  expect(breakdowns(emulator)).toHaveLength(asked);
  const by = `${os.userInfo().username} on ${os.hostname()}`;
  const { stdout } = await context.run(["status"]);
  expect(stdout).toContain(` by ${by}: the vendor moves house\n`);
  expect(stdout).not.toContain("next run");
  const { jobs } = JSON.parse((await context.run(["status", "--json"])).stdout);
  expect(jobs).toMatchObject([{ paused: { by } }]);
  expect(jobs[0]).not.toHaveProperty("nextRun");
  const listed = (await context.run(["jobs"])).stdout;
  expect(listed).toMatch(/^export nightly \(.*\): paused since .*: the vendor moves house\n$/);

  await context.run(["jobs", "resume", "nightly"]);
  context.work();
  await waitForRuns(db, 2);
  expect(await coverage(db)).toEqual({ complete: 3 });
});

test("a request that fails at every attempt is not retried for an hour", async ({ context }) => {
  const emulator = await context.setUp();
  emulator.fault = () => ({ kind: "answer", status: 503 });
  await sql`update usage_export_queue.queue set retry_limit = 0 where name = 'export'`.execute(db);
  try {
    context.work();
    const [run] = await waitForRuns(db, 1);
    expect(run).toMatchObject({ status: "failed", requests: 1, complete: 0, failed: 2 });
    const { rows } = await sql`select status, error from usage_export.slice`.execute(db);
    const error = expect.stringContaining("503");
    expect(rows).toEqual([1, 2].map(() => ({ status: "failed", error })));
    expect(await context.run(["status"])).toMatchObject({ status: 1 });

    // A new worker does not retry the failed slices for an hour.
    const asked = breakdowns(emulator).length;
    emulator.fault = undefined;
    await workOnce(context, db);
    expect(breakdowns(emulator)).toHaveLength(asked);
    await sql`update usage_export.slice set attempted_at = attempted_at - interval '1 hour'`.execute(db);
    await workOnce(context, db);
    expect(await runs(db)).toMatchObject([{ status: "failed" }, { trigger: "catchup", status: "ok" }]);
    expect(await coverage(db)).toEqual({ complete: 2 });
  } finally {
    await sql`update usage_export_queue.queue set retry_limit = 7 where name = 'export'`.execute(db);
  }
});

test("a worker replaces a key that is due with exactly one new key", async ({ context }) => {
  const common = { schedule: farSchedule(), project: "production", comment: "usage exporter", scopes: ["member"] };
  const key = { rotation: "exporter", first: { env: "USAGE_EXPORT_KEY" } };
  const rotations = [{ ...common, name: "exporter" }];
  const emulator = await context.setUp({ rotations, projects: [{ ...PRODUCTION, key }] });
  const masterKey = Buffer.from(context.newSecret().slice(0, 32)).toString("base64");
  context.work({ USAGE_EXPORT_MASTER_KEY: masterKey });
  expect(await waitForRuns(db, 2)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: "rotation", job: "exporter", trigger: "catchup", status: "ok" }),
      expect.objectContaining({ kind: "export", status: "ok" }),
    ]),
  );
  expect(emulator.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
});

/** A module that makes the program take its standard error for an open terminal. */
const FAKE_TERMINAL = `import tty from "node:tty"; import { syncBuiltinESMExports } from "node:module";
  process.stderr.isTTY = true; tty.isatty = () => true; syncBuiltinESMExports();`;
const AT_TERMINAL = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FAKE_TERMINAL)}` };

test("on a terminal start shows its address, the next runs, and a line for each run", async ({ context }) => {
  const emulator = await context.setUp({ exports: [{}, { name: "weekly" }] });
  await context.run(["jobs", "pause", "weekly", "--why", "moving house"]);
  emulator.fault = ({ path }) => (path.includes("breakdown") ? { kind: "body", change: () => ({}) } : undefined);
  const worker = context.start(["start"], AT_TERMINAL);
  await waitForRuns(db, 1);
  await worker.waitFor("export nightly (catchup)");
  worker.kill("SIGTERM");
  const { stdout, stderr } = await worker.ended;
  expect(stdout.split("\n")).toEqual([
    expect.stringMatching(/^dashboard, health and metrics: http:\/\/127\.0\.0\.1:\d+\/$/),
    expect.stringMatching(/^export nightly \(30 \d+ \* \* \* UTC\): next run 2\d{3}-\d\d-\d\d \d\d:30 UTC$/),
    expect.stringMatching(/^export weekly \(.* UTC\): paused since .*: moving house$/),
    expect.stringContaining("Ctrl-C"),
    expect.stringMatching(
      /^2\S+ \S+ UTC export nightly \(catchup\) failed, 1 request, 0 of 2 slices complete, 0 rows changed, (?:under )?\d+ s: expected an array/,
    ),
    "",
  ]);
  expect(stderr).not.toContain("run finished");
});

test("the line of a rotation lists its actions", () => {
  const run = { kind: "rotation", job: "exporter", trigger: "schedule", status: "ok" } as const;
  const line = runLine({ ...run, did: ["created", "activated"] }, new Date("2026-03-17T04:00:02Z"));
  expect(line).toBe("2026-03-17 04:00 UTC rotation exporter (schedule) ok, created, activated");
});

test("a worker that refuses an old schema says to run migrate", async ({ context }) => {
  await context.setUp();
  // The stored hash is hexadecimal, so with an x it differs from every hash.
  const setHashSuffix = (suffix: string) =>
    sql`update usage_export.schema_version set views_hash = replace(views_hash, 'x', '') || ${suffix}`.execute(db);
  await setHashSuffix("x");
  try {
    const { status, stderr } = await context.run(["start"]);
    expect(status).toBe(1);
    expect(stderr).toContain("the database is not up to date; run: usage-export migrate");
  } finally {
    await setHashSuffix("");
  }
});
