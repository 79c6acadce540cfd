// Backfills: which days they request, which days they report as missing, and how they continue after they were stopped or killed.

import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf, daysOf } from "../../../src/emulator/days.ts";
import type { Emulator } from "../../support/emulator.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { breakdowns, coverage, holdAnswersFrom } from "../evidence.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";

const { test, db } = await databaseTest();

const today = dayOf(new Date());
const yesterday = addDays(today, -1);

/** Three series of 100 days are 300 slices. They take twelve requests, as a request has at most 31 days. */
const GROUPINGS = ["none", "endpoint", "tags"];
const HUNDRED_DAYS = lastDays(100);

function backfill({ start, end }: { readonly start: string; readonly end: string }, ...options: string[]): string[] {
  return ["backfill", "--from", start, "--to", end, ...options];
}

test("after a backfill was killed, the next one reads only what is missing", async ({ context }) => {
  const emulator = await serveSeries(context);
  const program = context.start(backfill(HUNDRED_DAYS));
  await holdAnswersFrom(emulator, 7);
  await expect.poll(storedSlices).not.toEqual([]);
  program.kill("SIGKILL");
  expect(await program.ended).toMatchObject({ status: null });
  const stored = await storedSlices();
  expect(await coverage(db)).toEqual({ complete: stored.length, missing: 300 - stored.length });
  const askedBefore = breakdowns(emulator).length;
  emulator.fault = undefined;

  const { status, stdout } = await context.run(backfill(HUNDRED_DAYS));

  const askedAgain = slicesByRequest(emulator).slice(askedBefore).flat();
  expect(askedAgain.filter((slice) => stored.includes(slice))).toEqual([]);
  expect(new Set([...stored, ...askedAgain]).size).toBe(300);
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining("300 slices, 300 complete, 0 ") });
  const reading = { groupings: GROUPINGS, window: HUNDRED_DAYS };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
});

test("a backfill stopped by Ctrl-C prints the command that continues it", async ({ context }) => {
  const emulator = await serveSeries(context);
  const program = context.start(backfill(HUNDRED_DAYS));
  await holdAnswersFrom(emulator, 7);
  program.kill("SIGINT");
  const stopped = await program.ended;

  const stored = await storedSlices();
  expect(stored.length).toBeGreaterThan(0);
  expect(stopped).toMatchObject({ status: 1, stderr: expect.stringContaining("usage-export: stopped by SIGINT") });
  const lines = stopped.stdout.trimEnd().split("\n");
  expect(lines.slice(0, 2)).toEqual([
    "stopped: what was read is stored; the same command reads the rest",
    `${HUNDRED_DAYS.start} to ${yesterday}: 300 slices, ${stored.length} complete, 0 suspect, 0 failed, ${300 - stored.length} missing`,
  ]);
  expect(lines[2]).toBe("  to read missing slices: the same command with --only missing");
  emulator.fault = undefined;
  expect(await context.run(backfill(HUNDRED_DAYS, "--only", "missing"))).toMatchObject({ status: 0 });
  expect(await coverage(db)).toEqual({ complete: 300 });
  // All requests after the first seven ask for slices that were not stored when the backfill stopped.
  expect(new Set(slicesByRequest(emulator).slice(7).flat()).size).toBeLessThanOrEqual(300 - stored.length);
});

test("--dry-run only prints what would be read", async ({ context }) => {
  const emulator = await serveSeries(context);
  const range = lastDays(32);

  const dry = await context.run(backfill(range, "--dry-run", "--grouping", "none"));
  const json = await context.run(backfill(range, "--dry-run", "--grouping", "none", "--json"));

  expect(dry).toMatchObject({
    status: 0,
    stdout: [
      `${addDays(today, -31)} to ${yesterday} (31 slices): production / none / all`,
      `${range.start} (1 slice): production / none / all`,
      "would read 32 slices in 2 requests: 1 s at 100 a second\n",
    ].join("\n"),
  });
  const series = { project: "production", grouping: "none", filter: "all" };
  const requests = [
    { ...series, start: addDays(today, -31), end: yesterday },
    { ...series, start: range.start, end: range.start },
  ];
  expect(JSON.parse(json.stdout)).toEqual([{ job: "nightly", slices: 32, seconds: 1, requests }]);
  expect(emulator.requests).toEqual([]);
  const { rows } = await sql`select from usage_export.series`.execute(db);
  expect(rows).toEqual([]);
});

test("--only failed reads what failed and nothing else", async ({ context }) => {
  const emulator = await serveSeries(context);
  emulator.fault = ({ path }) =>
    path.includes("grouping=tags") ? { kind: "answer", status: 400, body: "not today" } : undefined;
  const range = lastDays(3);

  const failed = await context.run(backfill(range));
  expect(failed).toMatchObject({ status: 1, stdout: expect.stringContaining("not today") });
  expect(failed.stdout).toContain("9 slices, 6 complete, 0 suspect, 3 failed, 0 missing");
  expect(failed.stdout).toContain("to read failed slices: the same command with --only failed\n");
  const json = await context.run(backfill(range, "--json", "--job", "nightly", "--only", "failed"));
  expect(JSON.parse(json.stdout)).toEqual({
    ...{ from: range.start, to: range.end, only: "failed", stopped: false },
    jobs: [expect.objectContaining({ job: "nightly", requests: 1, planned: 3, complete: 0, failed: 3 })],
    range: { complete: 6, suspect: 0, failed: 3, missing: 0 },
  });
  emulator.fault = undefined;
  const asked = breakdowns(emulator).length;

  expect(await context.run(backfill(lastDays(4), "--only", "failed"))).toMatchObject({ status: 0 });
  expect(slicesByRequest(emulator).slice(asked)).toEqual([daysOf(range).map((day) => `tags ${day}`)]);
  expect(await coverage(db)).toEqual({ complete: 9 });
  expect(await context.run(backfill(range))).toMatchObject({
    status: 0,
    stdout: `nothing to do\n${range.start} to ${yesterday}: 9 slices, 9 complete, 0 suspect, 0 failed, 0 missing\n`,
  });
  expect(breakdowns(emulator)).toHaveLength(asked + 1);
});

test("a backfill whose answers are in doubt keeps the stored numbers", async ({ context }) => {
  let isEmpty = false;
  const usage = () => (isEmpty ? [] : [{ endpoint: "listen", requests: 5 }]);
  await context.setUp({}, { usage });
  const range = lastDays(3);
  expect(await context.run(backfill(range))).toMatchObject({ status: 0 });
  isEmpty = true;

  const doubted = await context.run(backfill(range, "--only", "all"));

  expect(doubted).toMatchObject({ status: 1, stdout: expect.stringContaining("0 complete, 3 suspect, 0 failed") });
  expect(await coverage(db)).toEqual({ suspect: 3 });
  expect(await context.run(["status", "--project", "production"])).toMatchObject({ status: 1 });
  const { rows } = await sql`select usage_date, requests from bi.usage_total order by usage_date`.execute(db);
  expect(rows).toEqual(daysOf(range).map((day) => ({ usage_date: day, requests: "5" })));
});

test("a backfill of old days leaves the missing days as they are", async ({ context }) => {
  await serveSeries(context);
  await context.run(["export", "--grouping", "none"]);
  await ageStoredData(db, 2);
  // The two days of the window are older now, and the two newest days are missing.
  expect(await coverage(db)).toEqual({ complete: 2, missing: 2 });
  const longAgo = { start: addDays(today, -60), end: addDays(today, -58) };

  expect(await context.run(backfill(longAgo, "--grouping", "none"))).toMatchObject({ status: 0 });

  expect(await coverage(db)).toEqual({ complete: 5, missing: 2 });
});

function serveSeries(context: ProgramContext): Promise<Emulator> {
  return context.setUp({ exports: [{ groupings: GROUPINGS }] });
}

/** The slices of each request, as "grouping day". */
function slicesByRequest(emulator: Emulator): string[][] {
  return breakdowns(emulator).map((path) => {
    const { grouping = "none", start = "", end = "" } = Object.fromEntries(new URL(path, emulator.url).searchParams);
    return daysOf({ start, end }).map((day) => `${grouping} ${day}`);
  });
}

async function storedSlices(): Promise<string[]> {
  const { rows } = await sql<{ slice: string }>`
    select concat_ws(' ', "grouping", usage_date) as slice from bi.coverage where status = 'complete'
  `.execute(db);
  return rows.map(({ slice }) => slice);
}
