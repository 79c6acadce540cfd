// The views for BI tools show the numbers that the service answered, for exports with a window, without one, and with answers without a date.
// If a later answer has no rows, the stored numbers stay until another run confirms that they are gone.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, type Day, dayOf } from "../../../src/usage/days.ts";
import { makeDoubtsAnHourOlder } from "../../db/stored-usage.ts";
import type { Emulator, Fault } from "../../support/emulator.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { breakdowns, coverage, rowsAsWritten, workOnce } from "../evidence.ts";
import { ALL_GROUPINGS, lastDays, type Reading, servedNumbers, storedNumbers } from "../numbers.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { workerConfig } from "../small-config.ts";

const { test, db } = await databaseTest();

const today = dayOf(new Date());
const yesterday = addDays(today, -1);
const OK = { status: 0 };
const FAILED = { status: 1 };

/** How many days the emulator answers if a request names none. */
const DAYS = 30;

async function expectServed(context: ProgramContext, emulator: Emulator, reading: Reading): Promise<void> {
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
}

const FILTERS = [
  { name: "all" },
  { name: "diarized-listen", features: { diarize: true }, dimensions: { endpoint: "listen" } },
  { name: "not punctuated", features: { punctuate: false } },
];
const FILTER_QUERIES = {
  all: "",
  "diarized-listen": "diarize=true&endpoint=listen",
  "not punctuated": "punctuate=false",
};

test("every view of every grouping and filter shows the service's numbers", async ({ context }) => {
  const exports = [{ groupings: ALL_GROUPINGS, filters: FILTERS, window: { days: 3 } }];
  const emulator = await context.setUp({ exports });
  expect(await context.run(["export"])).toMatchObject(OK);
  await expectServed(context, emulator, { groupings: ALL_GROUPINGS, filters: FILTER_QUERIES, window: lastDays(3) });

  const written = async () => {
    const { rows: history } = await sql`select count(*) from usage_export.row_revision`.execute(db);
    return { history, rows: await rowsAsWritten(db) };
  };
  const before = await written();
  expect(before.rows.length).toBeGreaterThan(20);
  expect(await context.run(["export"])).toMatchObject({ ...OK, stdout: expect.stringContaining("0 rows changed") });
  expect(await written()).toEqual(before);
});

test("each run stores the newest numbers of today", async ({ context }) => {
  const emulator = await context.setUp({ exports: [{ window: { days: 1, today: true } }] });
  const reading = { groupings: ["none"], window: { start: yesterday, end: today } };
  for (const hour of [12, 13]) {
    emulator.now = () => new Date(`${today}T${hour}:00:00Z`);
    expect(await context.run(["export"])).toMatchObject(OK);
    await expectServed(context, emulator, reading);
  }
  const { rows } = await sql`select usage_date, status, finality from bi.coverage order by usage_date`.execute(db);
  expect(rows).toEqual([
    { usage_date: yesterday, status: "complete", finality: "settling" },
    { usage_date: today, status: "complete", finality: "open" },
  ]);
});

test("an export without a window stores the days that the answer names", async ({ context }) => {
  const emulator = await context.setUp({ exports: [{ groupings: ["none", "tags"], window: undefined }] });
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(breakdowns(emulator)).toHaveLength(2);
  for (const path of breakdowns(emulator)) expect(path).not.toMatch(/start=|end=/);
  await expectServed(context, emulator, { groupings: ["none", "tags"], window: lastDays(DAYS) });
});

/** Exports one row for each day, without a window. After that the emulator has no usage. */
async function exportThenEmpty(context: ProgramContext, fault?: Fault) {
  let isEmpty = false;
  const usage = () => (isEmpty ? [] : [{ endpoint: "listen", requests: 5 }]);
  const emulator = await context.setUp({ exports: [{ window: undefined }] }, { usage, fault: () => fault });
  expect(await context.run(["export"])).toMatchObject(OK);
  const good = await rowsAsWritten(db);
  expect(good.length).toBeGreaterThanOrEqual(DAYS - 1);
  isEmpty = true;
  return { emulator, good };
}

test("an answer without rows makes its days suspect until a later run confirms it", async ({ context }) => {
  const { good } = await exportThenEmpty(context);
  const suspect = expect.stringContaining(`${good.length} suspect`);
  expect(await context.run(["export"])).toMatchObject({ ...FAILED, stdout: suspect });
  expect(await rowsAsWritten(db)).toEqual(good);
  expect(await coverage(db)).toMatchObject({ suspect: good.length });
  expect(await context.run(["status"])).toMatchObject(FAILED);

  await makeDoubtsAnHourOlder(db);
  expect(await context.run(["export"])).toMatchObject(OK);
  expect((await sql`select * from bi.usage_total`.execute(db)).rows).toEqual([]);
});

test("stored days become suspect if the answer's rows begin after them", async ({ context }) => {
  const { emulator, good } = await exportThenEmpty(context);
  const firstDay = addDays(today, -3);
  const results = [{ requests: 5, hours: 0, start: firstDay, end: firstDay }];
  emulator.fault = () => ({ kind: "body", change: (answer) => ({ ...answer, results }) });
  expect(await context.run(["export"])).toMatchObject(FAILED);
  const { rows } = await sql`
    select max(usage_date)::text as to, count(*)::integer as days from bi.coverage
    where status = 'suspect' and usage_date < ${firstDay}::date
  `.execute(db);
  // The three days from `firstDay` to yesterday are not before it.
  expect(rows).toEqual([{ to: addDays(firstDay, -1), days: good.length - 3 }]);
});

test("an answer without rows and dates fails without emptying a day", async ({ context }) => {
  const { emulator, good } = await exportThenEmpty(context, { kind: "body", change: ({ results }) => ({ results }) });
  const says = expect.stringContaining("has no rows and names no day, though earlier ones had");
  expect(await context.run(["export"])).toMatchObject({ ...FAILED, stdout: says });
  expect(await rowsAsWritten(db)).toEqual(good);
  const { rows } = await sql`select status from bi.coverage where usage_date = ${today}::date`.execute(db);
  expect(rows).toEqual([{ status: "failed" }]);
  await context.configure(workerConfig(emulator.url, { exports: [{ window: undefined, emptyGuard: "off" }] }));
  expect(await context.run(["export"])).toMatchObject(OK);
});

const LONG_AGO = addDays(today, -60);
const BACKFILL = ["backfill", "--from", LONG_AGO, "--to", yesterday];

function serveUnusualDay(context: ProgramContext, part = {}) {
  const usage = (_: string, day: Day) => [{ endpoint: "listen", requests: day === yesterday ? 9_000 : 1_000 }];
  return context.setUp(part, { firstPaidDay: LONG_AGO, usage });
}

test("an unusual day is reported only by the run that finds it", async ({ context }) => {
  await serveUnusualDay(context);
  expect((await context.run(BACKFILL)).stderr).toContain("unusual usage");
  // The usual bounds follow from 59 days of 1,000 requests each.
  expect((await context.run(["status"])).stdout).toContain(
    `reminders:\n  unusual usage of production on ${yesterday}: Requests: 9,000, and may still change, usually 687 to 1,375\n`,
  );
  const again = await context.run(["export"]);
  expect(again).toMatchObject({ ...OK, stderr: expect.not.stringContaining("unusual usage") });
});

test("a worker finds unusual days that were read while anomalies were off", async ({ context }) => {
  const unusualDays = async () => (await sql`select usage_date as day from bi.usage_anomalies`.execute(db)).rows;
  await serveUnusualDay(context, { anomalies: { sensitivity: "off" } });
  await context.run(BACKFILL);
  expect(await unusualDays()).toEqual([]);
  await serveUnusualDay(context);
  await workOnce(context, db);
  expect(await unusualDays()).toEqual([{ day: yesterday }]);
});

/** Each night the service answers one total of all usage so far, without a date, and an export stores it. The total grows by 10 a night. */
async function exportNights(context: ProgramContext, nights: number): Promise<void> {
  let requests = 9_950;
  const usage = (_: string, day: string) =>
    day === today ? [{ endpoint: "listen", method: "sync", requests, hours: 0.5 }] : [];
  await context.setUp({ exports: [{ window: undefined }] }, { window: "cumulative", firstPaidDay: today, usage });
  for (let night = 0; night < nights; night++) {
    if (night > 0) await ageStoredData(db, 1);
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    requests += 10;
  }
}

const rowsOf = async (view: string) => (await sql`select * from ${sql.raw(view)}`.execute(db)).rows;

test("a growing total without a date is stored as snapshots, not as the usage of a day", async ({ context }) => {
  await exportNights(context, 3);
  const { rows } = await sql`
    select snapshot, group_value, requests, requests_change, fell, gone from bi.usage_snapshot order by snapshot
  `.execute(db);
  const common = { group_value: null, fell: false, gone: false };
  expect(rows).toEqual([
    { ...common, snapshot: 1, requests: "9950", requests_change: null },
    { ...common, snapshot: 2, requests: "9960", requests_change: "10" },
    { ...common, snapshot: 3, requests: "9970", requests_change: "10" },
  ]);
  for (const view of ["bi.usage_total", "bi.usage_filtered", "bi.usage_as_of(now())"])
    expect(await rowsOf(view)).toEqual([]);
  await context.run(["report", "--out", "report.html"]);
  const report = await readFile(path.join(context.folder, "report.html"), "utf8");
  // The report must not show any of the three totals, nor their sum. Its scripts are left out, as they contain other numbers.
  const body = report.replaceAll(/<(script|style)[^>]*>[\s\S]*?<\/\1>/g, "");
  expect(body).not.toMatch(/9[,. \u202f]?9[5-9]0|29[,. \u202f]?880/);
  expect((await context.run(["status"])).stdout).toMatch(/carry no date/);
});

test("coverage, status and the export say that the numbers have no days", async ({ context }) => {
  await exportNights(context, 1);
  const { stdout } = await context.run(["export"]);
  expect(stdout).toMatch(/1 request, 0 slices complete, 0 suspect, 0 failed/);
  expect(stdout).toMatch(/1 answer carries no date.*bi\.usage_snapshot/);
  await ageStoredData(db, 4);

  const error = expect.stringContaining("bi.usage_snapshot");
  expect(await rowsOf("bi.coverage")).toMatchObject([
    { usage_date: null, status: "undated", finality: null, rows: 1, error },
  ]);
  expect(await rowsOf("bi.coverage_gaps")).toEqual([]);
  expect(await rowsOf("bi.freshness")).toMatchObject([{ fresh_through: null, due_through: null, grouping: "none" }]);
  const run = { status: "ok", slices_planned: 1, slices_complete: 0, slices_undated: 1 };
  expect(await rowsOf("bi.runs")).toMatchObject([run, run]);
  const status = await context.run(["status"]);
  expect(status).toMatchObject({ status: 0, stdout: expect.stringContaining("slices: 0 complete") });
  expect(status.stdout).toContain("undated: production / none / all: the answers carry no date, see bi.usage_snapshot");
});
