// A service whose answers carry no date: an answer is stored as a snapshot of unknown span, and not as the usage of a day.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";

const { test, db } = await databaseTest();

const today = dayOf(new Date());

/** Exports one summary of all usage up to now, without a date, on so many nights. Each is higher by 10. */
async function exportNights(context: ProgramContext, nights: number, job = {}): Promise<void> {
  let requests = 9_950;
  const usage = (_: string, day: string) =>
    day === today ? [{ endpoint: "listen", method: "sync", requests, hours: 0.5 }] : [];
  await context.setUp({ exports: [{ window: undefined, ...job }] }, { window: "cumulative", countsFrom: today, usage });
  for (let night = 0; night < nights; night++) {
    if (night > 0) await ageStoredData(db, 1);
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    requests += 10;
  }
}

const rowsOf = async (view: string) => (await sql`select * from ${sql.raw(view)}`.execute(db)).rows;

test("a growing summary is stored as snapshots, and shown nowhere as the usage of a day", async ({ context }) => {
  await exportNights(context, 3);
  const { rows } = await sql`
    select snapshot, group_value, requests, requests_change, fell, gone from bi.usage_snapshot order by snapshot
  `.execute(db);
  const of = { group_value: null, fell: false, gone: false };
  expect(rows).toEqual([
    { ...of, snapshot: 1, requests: "9950", requests_change: null },
    { ...of, snapshot: 2, requests: "9960", requests_change: "10" },
    { ...of, snapshot: 3, requests: "9970", requests_change: "10" },
  ]);
  for (const view of ["bi.usage_total", "bi.usage_filtered", "bi.usage_as_of(now())"])
    expect(await rowsOf(view)).toEqual([]);
  await context.run(["report", "--out", "report.html"]);
  const report = await readFile(path.join(context.folder, "report.html"), "utf8");
  // The report may name none of the three totals, nor their sum; its script has numbers of its own.
  const body = report.replaceAll(/<(script|style)[^>]*>[\s\S]*?<\/\1>/g, "");
  expect(body).not.toMatch(/9[,. \u202f]?9[5-9]0|29[,. \u202f]?880/);
  expect((await context.run(["status"])).stdout).toMatch(/carry no date/);
});

test("coverage, status and the export say that the numbers have no days", async ({ context }) => {
  await exportNights(context, 1);
  const { stdout } = await context.run(["export"]);
  expect(stdout).toMatch(/1 requests, 0 slices complete, 0 suspect, 0 failed/);
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

test.for([
  ["day", 0],
  ["day-before", 1],
] as const)(
  'with "undated": "%s" the summary is the usage of the day that is %i days before the run',
  async ([undated, before], { context }) => {
    await exportNights(context, 1, { undated });
    const usage_date = addDays(today, -before);
    expect(await rowsOf("bi.usage_total")).toMatchObject([{ usage_date, requests: "9950" }]);
    expect(await rowsOf("bi.usage_snapshot")).toEqual([]);
    expect(await rowsOf("bi.coverage")).toMatchObject([{ usage_date, status: "complete" }]);
  },
);
