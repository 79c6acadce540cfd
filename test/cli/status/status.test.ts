// What `status` prints, and when its exit status is 1: for incomplete coverage, and for a job that needs a worker while none runs.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { storeCallPause } from "../../../src/db/calling-processes.ts";
import { heartbeatWorker, pauseJob } from "../../../src/db/jobs/jobs.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { configuredSeries } from "../../../src/usage/export-plan.ts";
import { newIntent, newRotation } from "../../db/keys/written-ledger.ts";
import { setDue } from "../../db/stored-usage.ts";
import type { Fault } from "../../support/emulator.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { breakdowns, waitForRuns, workOnce } from "../evidence.ts";
import { databaseTest } from "../program-context.ts";
import { PRODUCTION, PROJECT_ID, smallConfig } from "../small-config.ts";

const { test, db } = await databaseTest();

const today = dayOf(new Date());
const yesterday = addDays(today, -1);
const UNREADABLE: Fault = { kind: "body", change: () => ({}) };

test("before the first run status shows when the job would run if there were a worker", async ({ context }) => {
  await context.configure(smallConfig("https://api.example.com"));
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(
    /^all is well so far, but nothing will run: no worker was ever started\nexport nightly \(15 2 \* \* \* UTC\)\n {2}last run: never\n {2}next run: 2\d{3}-\d\d-\d\d 02:15 UTC\n/,
  );
  expect(stdout).toContain("slices: 0 complete, 0 suspect, 0 failed, 0 missing");
  expect(status).toBe(0);
  await context.run(["jobs", "pause", "nightly", "--why", "run by cron"]);
  expect((await context.run(["status"])).stdout).toMatch(/^all is well\n/);
});

test("days without a run are missing until the next run reads them", async ({ context }) => {
  const schedule = "15 2 * * *";
  await context.setUp({ exports: [{ schedule }] });
  await context.run(["export"]);
  const first = await context.run(["status"]);
  expect(first.stdout).toMatch(/^all is well\n/);
  expect(first.stdout).toMatch(/last run: ok, \d{4}-\d\d-\d\d \d\d:\d\d UTC, manual\n/);
  expect(first.stdout).toContain("slices: 2 complete, 0 suspect, 0 failed, 0 missing");
  expect(first.stdout).toContain("workers: none was ever seen; nothing runs by itself until one is started");
  expect(first.status).toBe(0);

  await ageStoredData(db, 5);
  const late = await context.run(["status"]);
  expect(late.stdout).toContain(`missing: production / none / all, ${addDays(today, -5)} to ${yesterday}\n`);
  expect(late.status).toBe(1);
  const json = await context.run(["status", "--json"]);
  expect(json.status).toBe(1);
  const gap = { status: "missing", error: null, from: addDays(today, -5), to: yesterday };
  expect(JSON.parse(json.stdout)).toMatchObject({
    readAt: expect.stringMatching(/Z$/),
    conditions: [{ name: "missing", severity: "warning", isWrong: true }],
    jobs: [
      {
        needsWorker: false,
        kind: "export",
        job: "nightly",
        schedule,
        timezone: "UTC",
        nextRun: expect.stringMatching(/T02:15:00.000Z$/),
        lastRun: { trigger: "manual", status: "ok", error: null },
      },
    ],
    slices: { complete: 2, suspect: 0, failed: 0, missing: 5 },
    gaps: [{ ...gap, series: [{ project: "production", source: "usage", grouping: "none", filter: "all" }] }],
    projects: [
      {
        ...{ projectId: PROJECT_ID, source: "usage", series: 1, freshThrough: addDays(today, -6) },
        ...{ complete: 2, missing: 5, failed: 0, suspect: 0 },
      },
    ],
  });

  await context.run(["export"]);
  expect(await context.run(["status"])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("7 complete, 0 suspect, 0 failed, 0 missing"),
  });
});

test("status shows what failed and why, until a backfill has read it", async ({ context }) => {
  const emulator = await context.setUp({}, { fault: () => UNREADABLE });
  await context.run(["export"]);
  const [from, to] = [addDays(today, -2), yesterday];
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(/last run: failed, .* manual: expected an array at "results"/);
  expect(stdout).toContain(`failed: production / none / all, ${from} to ${to}: expected an array`);
  expect(status).toBe(1);

  emulator.fault = undefined;
  await context.run(["backfill", "--only", "failed", "--from", from, "--to", to]);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});

/** The fields that scripts read, by the part of the JSON output that has them. */
const FIELDS = {
  "": "budgets callPauses causes conditions gaps gapsLeftOut jobs lists projects readAt rotations slices undated workers",
  "callPauses[]": "key until",
  "causes[]": "code days error isBillingRefused isRetried project projects since slices slicesWithNumbers",
  "conditions[]": "isWrong name severity since subject text",
  "gaps[]": "error from series status to",
  "gaps[].series[]": "filter grouping project source",
  "jobs[]": "failedRun job kind lastRun lastSuccess needsWorker nextRun paused schedule timezone",
  "jobs[].failedRun": "error isExplained startedAt status trigger",
  "jobs[].lastRun": "error finishedAt startedAt status suspect trigger",
  "jobs[].paused": "at by why",
  "projects[]": "complete failed freshThrough missing project projectId series source suspect",
  "rotations[]":
    "ageDays ageSeconds apiKeyId failedAttempts fallback fallbackAt keys lastError ledgerName project rotation",
  "rotations[].keys": "active draining dueForRemoval orphan pending",
  slices: "complete failed missing suspect",
  "workers[]": "host lastSeenAt pid recent startedAt state version",
};

test("--json prints exactly the fields that scripts read", async ({ context }) => {
  await context.setUp({ exports: [{}, { name: "paused" }] }, { fault: () => UNREADABLE });
  await context.run(["export", "--job", "nightly"]);
  await pauseJob(db, { kind: "export", name: "paused" }, { why: "moving house", by: "me" });
  await heartbeatWorker(db, { workerId: randomUUID(), host: "node-1", pid: 41, version: "1.2.3" });
  await storeCallPause(db, "env USAGE_EXPORT_KEY", 60_000);
  const rotation = await newRotation(db);
  await rotation.recordKey(newIntent(), "active");

  const answer = JSON.parse((await context.run(["status", "--json"])).stdout);
  // The part is the path of a field without its last name.
  const parts = Map.groupBy(new Set(fieldsOf(answer)), (field) => field.slice(0, Math.max(0, field.lastIndexOf("."))));
  const names = [...parts].map(([part, fields]) => [part, fields.map((field) => field.split(".").at(-1)).sort()]);
  expect(Object.fromEntries(names)).toEqual(
    Object.fromEntries(Object.entries(FIELDS).map(([part, fields]) => [part, fields.split(" ")])),
  );
});

/** The paths of all fields. The items of a list share their paths. */
function fieldsOf(value: unknown, path = ""): string[] {
  if (value === null || typeof value !== "object") return [];
  if (Array.isArray(value)) return value.flatMap((one) => fieldsOf(one, `${path}[]`));
  return Object.entries(value).flatMap(([name, one]) => {
    const field = path === "" ? name : `${path}.${name}`;
    return [field, ...fieldsOf(one, field)];
  });
}

test("status and the report show a budget that is used up", async ({ context }) => {
  const budget = { name: "calls", metric: "requests", amount: "0.5", period: "day", from: yesterday };
  await context.setUp({ budgets: [budget] });
  await context.run(["export"]);
  const { rows } = await sql`
    select b.used = u.requests as "isEqual" from bi.budgets b join bi.usage_total u on u.usage_date = b.period_start
  `.execute(db);
  expect(rows).toEqual([{ isEqual: true }]);

  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(
    new RegExp(
      `^all is well\nreminders:\n  budget calls \\(${yesterday}\\) reached 100%: [\\d,]+ of 0.5 requests \\(\\d+%\\)`,
    ),
  );
  expect(stdout).toMatch(/\nbudget calls \(\d{4}-\d\d-\d\d\): no day of it was read yet; the budget is 0.5 requests\n/);
  expect(status).toBe(0);
  await context.run(["report", "--out", "report.html"]);
  const report = await readFile(path.join(context.folder, "report.html"), "utf8");
  expect(report).toMatch(/id="budgets"[\s\S]*>calls<[\s\S]*of 0\.5 requests \(\d+%\)/);
});

/** Moves the stored times back, as if this time had passed without any worker. */
async function passMinutes(minutes: number): Promise<void> {
  const ago = sql`make_interval(secs => ${60 * minutes})`;
  await sql`update usage_export.job set scheduled_through = scheduled_through - ${ago}`.execute(db);
  await sql`update usage_export.worker set last_seen_at = last_seen_at - ${ago}`.execute(db);
}

test("a job of every minute is overdue once the worker was killed", async ({ context }) => {
  await context.setUp({ exports: [{ schedule: "* * * * *" }] });
  const worker = context.start(["start"]);
  await waitForRuns(db, 1);
  const live = await context.run(["status"]);
  expect(live.stdout).toMatch(/^all is well\n/);
  expect(live.stdout).toMatch(
    new RegExp(`^workers: 1 live\n {2}\\S+ pid ${worker.pid}, version \\S+, started .*, last seen `, "m"),
  );
  expect(live.status).toBe(0);
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
  await context.setUp();
  await workOnce(context, db);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
  await passMinutes(2.1);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toContain("no worker runs");
  expect(stdout).toMatch(/^workers: none runs; the last one was \S+ pid \d+, .*, stopped /m);
  expect(status).toBe(1);

  await context.run(["jobs", "pause", "nightly", "--why", "run by cron"]);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});

/** The day five days ago, which was read only while it lasted, and is no longer in the export's window. */
const OPEN_DAY = addDays(today, -5);

test("a day that was read only while it lasted is missing until it is read once more", async ({ context }) => {
  let isOver = false;
  const usage = () => [{ endpoint: "listen", requests: isOver ? 1_000 : 160 }];
  const emulator = await context.setUp({ exports: [{ window: { days: 2, today: true } }] }, { usage });
  await context.run(["export"]);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
  await ageStoredData(db, 5);
  isOver = true;

  const { status, stdout } = await context.run(["status"]);
  const why = `${OPEN_DAY}: read before the day was over, at [-\\d: ]+UTC, and not since\n`;
  expect(stdout).toMatch(new RegExp(`missing: production / none / all, ${why}`));
  expect(stdout).toContain(`missing: production / none / all, ${addDays(OPEN_DAY, 1)} to ${yesterday}\n`);
  expect(stdout).toContain("slices: 2 complete, 0 suspect, 0 failed, 5 missing");
  expect(status).toBe(1);

  await context.run(["export"]);
  const { rows: closed } = await sql`select requests from bi.usage_total where usage_date = ${OPEN_DAY}`.execute(db);
  expect(closed).toEqual([{ requests: "1000" }]);
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
  // One request while the day lasted, and one from that day to the end of the window. The third export requests its window only.
  expect(breakdowns(emulator)).toHaveLength(2);
  await context.run(["export"]);
  expect(breakdowns(emulator)).toHaveLength(3);
});

const NAMES = ["lab", "prod-eu", "prod-us"];
const CONFIG = smallConfig("http://127.0.0.1:1", {
  projects: NAMES.map((name) => ({ ...PRODUCTION, name, id: name })),
  exports: [{ projects: NAMES }, { name: "bills", source: "billing", projects: ["prod-us"] }],
});

test("status lists the worst projects first, or only those that --project names", async ({ context }) => {
  await context.configure(CONFIG);
  const { exports } = parseConfig(JSON.stringify(CONFIG), "jobs.config.json", "/");
  const series = configuredSeries(exports);
  const ids = await registerSeries(db, series);
  // In the order of the series (lab, prod-eu, prod-us, bills of prod-us), none, two, three and four days are due.
  for (const [i, { series: one }] of series.entries()) {
    if (i > 0) await setDue(db, [seriesIdOf(ids, one)], addDays(yesterday, -i), yesterday);
  }

  const { stdout } = await context.run(["status"]);
  expect(stdout).toMatch(
    /\nprojects: 2 of 3 have days that are not complete\n {2}prod-us \(billing\): .* 4 missing; .*\n {2}prod-us: 1 series, 0 complete, 3 missing; .*\n {2}prod-eu: 1 series, 0 complete, 2 missing;/,
  );

  expect(await context.run(["status", "--project", "prod-e*"])).toMatchObject({
    status: 1,
    stdout: [
      `prod-eu: 1 series, 0 complete, 2 missing; nothing missing through ${addDays(yesterday, -2)}`,
      `  missing: prod-eu / none / all, ${addDays(yesterday, -1)} to ${yesterday}\n`,
    ].join("\n"),
  });
  const lab = await context.run(["status", "--project", "lab"]);
  expect(lab).toMatchObject({ status: 0, stdout: "lab: 1 series, 0 complete; no day is due\n" });
  const json = JSON.parse((await context.run(["status", "--json", "--project", "prod-*"])).stdout);
  expect(json).toMatchObject({
    projects: [{ source: "billing" }, { project: "prod-us" }, { project: "prod-eu" }],
    gaps: ["prod-eu", "prod-us", "prod-us"].map((project) => ({ series: [{ project }] })),
    gapsLeftOut: 0,
  });

  const unknown = await context.run(["status", "--project", "prod-e"]);
  expect(unknown.status).toBe(2);
  expect(unknown.stderr).toContain('did you mean "prod-eu"?');
});
