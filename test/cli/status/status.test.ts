// What the command `status` prints, and that its exit status agrees with the coverage.

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { storePause } from "../../../src/db/calling-processes.ts";
import { heartbeatWorker, pauseJob } from "../../../src/db/jobs/jobs.ts";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { newIntent, newRotation } from "../../db/keys/written-ledger.ts";
import { testDatabase } from "../../support/database.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { PROJECT_ID, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const today = dayOf(new Date());

test("before the first run, status shows that nothing is due or stored, when the job would run, and that nothing runs it", async ({
  context,
}) => {
  await context.configure(smallConfig("https://api.example.com"));
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(
    /^all is well so far, but nothing will run: no worker was ever started\nexport nightly \(15 2 \* \* \* UTC\)\n {2}last run: never\n {2}next run: 2\d{3}-\d\d-\d\d 02:15 UTC\n/,
  );
  expect(stdout).toContain("slices: 0 complete, 0 suspect, 0 failed, 0 missing");
  expect(status).toBe(0);
});

test("after a successful run, all slices are complete", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(/last run: ok, \d{4}-\d\d-\d\d \d\d:\d\d UTC, manual\n/);
  expect(stdout).toContain("slices: 2 complete, 0 suspect, 0 failed, 0 missing");
  expect(status).toBe(0);
});

test("after a failed run, status shows what failed and why, and exits with 1", async ({ context }) => {
  const emulator = await context.serve({ fault: () => ({ kind: "body", change: () => ({}) }) });
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(/last run: failed, .* manual: expected an array at "results"/);
  expect(stdout).toMatch(
    new RegExp(`failed: production / none / all, ${addDays(today, -2)} to ${addDays(today, -1)}: expected an array`),
  );
  expect(status).toBe(1);
});

test("days without a run are missing until the next run, which also reads those that are older than its window", async ({
  context,
}) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  await ageStoredData(db, 5);

  const before = await context.run(["status"]);
  expect(before.stdout).toContain(`missing: production / none / all, ${addDays(today, -5)} to ${addDays(today, -1)}\n`);
  expect(before.status).toBe(1);

  await context.run(["export"]);
  const after = await context.run(["status"]);
  expect(after).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("7 complete, 0 suspect, 0 failed, 0 missing"),
  });
});

test("`status --json` has the same facts", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  await ageStoredData(db, 1);
  const { status, stdout } = await context.run(["status", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({
    readAt: expect.stringMatching(/Z$/),
    conditions: [
      {
        ...{ name: "missing", subject: "", severity: "warning", since: null, isWrong: true },
        text: "usage of 1 project was due and never read: usage-export status says which",
      },
    ],
    callPauses: [],
    undated: [],
    workers: [],
    causes: [],
    lists: [],
    budgets: [],
    jobs: [
      {
        needsWorker: false,
        ...{ kind: "export", job: "nightly", schedule: "15 2 * * *", timezone: "UTC" },
        nextRun: expect.stringMatching(/T02:15:00.000Z$/),
        lastRun: expect.objectContaining({
          trigger: "manual",
          status: "ok",
          error: null,
        }),
      },
    ],
    slices: { complete: 2, suspect: 0, failed: 0, missing: 1 },
    gaps: [
      {
        ...{ status: "missing", error: null, from: addDays(today, -1), to: addDays(today, -1) },
        series: [{ project: "production", source: "usage", grouping: "none", filter: "all" }],
      },
    ],
    gapsLeftOut: 0,
    projects: [
      {
        ...{ project: "production", projectId: PROJECT_ID, source: "usage", series: 1 },
        ...{ complete: 2, missing: 1, failed: 0, suspect: 0, freshThrough: addDays(today, -2) },
      },
    ],
    rotations: [],
  });
  expect(status).toBe(1);
});

test("the fields of the answer in JSON are those that scripts read, and no others", async ({ context }) => {
  const emulator = await context.serve({ fault: () => ({ kind: "body", change: () => ({}) }) });
  await context.configure(smallConfig(emulator.url, { exports: [{}, { name: "paused" }] }));
  await context.run(["export", "--job", "nightly"]);
  await pauseJob(db, { kind: "export", name: "paused" }, { why: "moving house", by: "me" });
  await heartbeatWorker(db, { workerId: randomUUID(), host: "node-1", pid: 41, version: "1.2.3" });
  await storePause(db, "env USAGE_EXPORT_KEY", 60_000);
  const rotation = await newRotation(db);
  await rotation.key(newIntent(), "active");

  expect(fieldsOf(JSON.parse((await context.run(["status", "--json"])).stdout)).sort()).toMatchSnapshot();
});

/** The paths of all fields; the items of a list have one path. */
function fieldsOf(value: unknown, path = ""): string[] {
  if (value === null || typeof value !== "object") return [path];
  if (Array.isArray(value)) return [...new Set([`${path}[]`, ...value.flatMap((one) => fieldsOf(one, `${path}[]`))])];
  return Object.entries(value).flatMap(([name, one]) => fieldsOf(one, path === "" ? name : `${path}.${name}`));
}

test("check advises a longer window if the last reading of a day still changes numbers", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url, { exports: [{ window: { days: 2 } }] }));
  // Ageing moves the stored days back by one, so each export stores the emulator's numbers of another date for the same day.
  for (let night = 0; night < 10; night += 1) {
    await ageStoredData(db, 1);
    await context.run(["export"]);
  }

  expect((await context.run(["check"])).stdout).toMatch(
    /^ {2}warn window of 2 days: may be too short: \d+ of the last 70 days still changed when they were read for the last time/m,
  );
});
