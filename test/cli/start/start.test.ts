// The worker as it runs every night: due days are read, missed ones are caught up, paused jobs are left alone.

import os from "node:os";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { programTest } from "../program-context.ts";
import { breakdowns, coverage, serveAndConfigure, waitForRuns, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

test("a worker that starts for the first time reads all due days at once", async ({ context }) => {
  const emulator = await serveAndConfigure(context);
  context.start(["start"]);
  expect(await waitForRuns(db, 1)).toEqual([
    expect.objectContaining({ job: "nightly", trigger: "catchup", status: "ok", requests: 1, planned: 2, complete: 2 }),
  ]);
  const reading = { groupings: ["none"], window: lastDays(2) };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
});

test("after three days without a worker, one tick reads all missing days", async ({ context }) => {
  await serveAndConfigure(context, { exports: [{ window: { days: 1 } }] });
  await workOnce(context, db);
  await ageStoredData(db, 3);
  expect(await coverage(db)).toEqual({ complete: 1, missing: 3 });
  context.start(["start"]);
  const [, second, ...others] = await waitForRuns(db, 2);
  expect(second).toMatchObject({ trigger: "catchup", status: "ok", planned: 3, complete: 3 });
  expect(others).toEqual([]);
  expect(await coverage(db)).toEqual({ complete: 4 });
});

test("deleted slices are read again before the next scheduled run", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { exports: [{ window: { days: 5 } }] });
  await workOnce(context, db);
  const { start } = lastDays(4);
  await sql`delete from usage_export.slice where usage_date in (${start}::date, ${start}::date + 2)`.execute(db);
  const asked = breakdowns(emulator).length;
  context.start(["start"]);
  const [, second] = await waitForRuns(db, 2);
  expect(second).toMatchObject({ trigger: "catchup", status: "ok", planned: 2, complete: 2 });
  expect(breakdowns(emulator).length - asked).toBe(2);
  expect(await coverage(db)).toEqual({ complete: 5 });
});

test("without a window the days of missed runs stay missing, and the next run stores one day", async ({ context }) => {
  await serveAndConfigure(context, { exports: [{ window: undefined, undated: "day" }] }, { window: "undated" });
  await workOnce(context, db);
  await ageStoredData(db, 3);
  context.start(["start"]);
  const [, second] = await waitForRuns(db, 2);
  expect(second).toMatchObject({ trigger: "catchup", status: "ok", planned: 1 });
  expect(await coverage(db)).toEqual({ complete: 2, missing: 2 });
});

test.for([["start"], ["export"]])(
  "%s deletes runs that are older than keepDays",
  async ([command = ""], { context }) => {
    await serveAndConfigure(context, { rest: { runs: { keepDays: 30 } } });
    await workOnce(context, db);
    await sql`
    insert into usage_export.run (run_id, kind, job, trigger, status, started_at, heartbeat_at)
    select gen_random_uuid(), 'export', 'nightly', 'catchup', 'ok', at, at
    from (values (now() - interval '31 days'), (now() - interval '29 days')) as moment (at)
  `.execute(db);
    if (command === "start") await workOnce(context, db);
    else expect(await context.run([command])).toMatchObject({ status: 0 });
    const { rows } = await sql`select from usage_export.run where started_at < now() - interval '1 day'`.execute(db);
    expect(rows).toHaveLength(1);
  },
);

test("a paused job does not run, `status` shows why, and the missed days are read once it is resumed", async ({
  context,
}) => {
  const emulator = await serveAndConfigure(context, { exports: [{ window: { days: 1 } }] });
  await workOnce(context, db);
  await ageStoredData(db, 2);
  const asked = breakdowns(emulator).length;
  const paused = await context.run(["jobs", "pause", "nightly", "--why", "the vendor moves house"]);
  expect(paused).toMatchObject({ status: 0, stdout: expect.stringContaining("the vendor moves house") });
  await workOnce(context, db);
  expect(breakdowns(emulator)).toHaveLength(asked);
  const { stdout } = await context.run(["status"]);
  const { username } = os.userInfo();
  expect(stdout).toContain(` by ${username} on ${os.hostname()}: the vendor moves house\n`);
  expect(stdout).not.toContain("next run");
  const { jobs } = JSON.parse((await context.run(["status", "--json"])).stdout);
  expect(jobs).toMatchObject([{ paused: { by: `${username} on ${os.hostname()}` } }]);
  expect(jobs[0]).not.toHaveProperty("nextRun");
  expect((await context.run(["jobs"])).stdout).toMatch(
    /^export nightly \(.*\): paused since .*: the vendor moves house\n$/,
  );

  await context.run(["jobs", "resume", "nightly"]);
  context.start(["start"]);
  await waitForRuns(db, 2);
  expect(await coverage(db)).toEqual({ complete: 3 });
});
