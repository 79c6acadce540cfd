// The command `dump`: what it writes and where. If it fails or is stopped, the old file stays.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { sql } from "kysely";
import { expect } from "vitest";
import { openApp } from "../../../src/app.ts";
import { runDump } from "../../../src/cli/dump.ts";
import { newSeries, rowOf, sliceOn, store } from "../../db/stored-usage.ts";
import { readCsv } from "../../show/read-csv.ts";
import { MAIN } from "../../support/program.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";

const { test, db, url } = await databaseTest();

/** Stores `count` days of coverage, the first of which is 2020-01-02. */
async function storeDays(count: number): Promise<void> {
  const { seriesId } = await newSeries(db, "none", { project: { id: "p1", name: "production" } });
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, rows, error)
    select ${seriesId}, date '2020-01-01' + day, 'complete', 1, 0, repeat('x', 200)
    from generate_series(1, ${count}::integer) day
  `.execute(db);
}

const jsonLines = (text: string) => text.split("\n").flatMap((line) => (line === "" ? [] : JSON.parse(line)));
const COVERAGE = ["dump", "--view", "coverage", "--format"];

const TEXTS = ["=1+1", 'say "so", twice', "two\r\nlines", "\u202Eright to left", "🦊", "\uFEFFmark"];

test("every text and digit is written as stored, with an apostrophe before a formula in CSV", async ({ context }) => {
  const { seriesId } = await newSeries(db, "model", { project: { id: "p1", name: "=1+1" } });
  const rows = TEXTS.map((text) => rowOf(text, { hours: "0.1000000000000000000001" }, '{"=more":0.10}', "model"));
  const days = [sliceOn("2026-03-17", rows), sliceOn("2026-03-18", [rowOf("later", "1", null, "model")])];
  await store(db, seriesId, days, { grouping: "model" });
  const dump = ["dump", "--view", "usage_by_model", "--from", "2026-03-17", "--to", "2026-03-17", "--format"];
  const lines = (await context.run([...dump, "jsonl"])).stdout.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).model).sort()).toEqual(TEXTS.toSorted());
  for (const line of lines)
    expect(line).toMatch(/"hours":0\.1000000000000000000001,.*"extra_metrics":\{"=more": 0\.10\}/);
  const [names, ...records] = readCsv((await context.run([...dump, "csv"])).stdout.replace(/^\uFEFF/, ""));
  const cells = (name: string) => records.map((record) => record[names?.findIndex(({ text }) => text === name) ?? -1]);
  const texts = TEXTS.map((text) => (text.startsWith("=") ? `'${text}` : text));
  expect(new Set(cells("model").map((cell) => cell?.text))).toEqual(new Set(texts));
  expect(cells("project")[0]).toEqual({ text: "'=1+1", quoted: true });
  expect(cells("hours")[0]).toEqual({ text: "0.1000000000000000000001", quoted: false });
  expect(cells("tokens_in")[0]).toEqual({ text: "", quoted: false });
});

test("if --out is a link, the dump replaces its target", async ({ context }) => {
  await storeDays(2_500);
  const file = path.join(context.folder, "coverage.csv");
  await writeFile(file, "the one of yesterday");
  await symlink(file, path.join(context.folder, "link.csv"));
  const { status, stdout } = await context.run([...COVERAGE, "csv", "--out", "link.csv"]);
  expect({ status, stdout }).toEqual({ status: 0, stdout: "2,500 rows of bi.coverage written to link.csv\n" });
  const [names, ...rows] = readCsv((await readFile(file, "utf8")).replace(/^\uFEFF/, ""));
  expect(rows).toHaveLength(2_500);
  expect(rows[0]?.[names?.findIndex((name) => name.text === "usage_date") ?? -1]?.text).toBe("2020-01-02");
  expect((await readdir(context.folder)).sort()).toEqual(["coverage.csv", "link.csv"]);
});

test("a signal ends a dump whose database hangs", async ({ context }) => {
  await storeDays(3);
  await writeFile(path.join(context.folder, "coverage.csv"), "the one of yesterday");
  await db.transaction().execute(async (tx) => {
    await sql`lock table usage_export.slice in access exclusive mode`.execute(tx);
    const program = context.start([...COVERAGE, "csv", "--out", "coverage.csv"], { LOG_LEVEL: "warn" });
    await expect.poll(() => readdir(context.folder)).toHaveLength(2);
    program.kill("SIGTERM");
    expect(await program.ended).toMatchObject({ status: 1, stderr: "usage-export: stopped by SIGTERM\n" });
  });
  expect(await readdir(context.folder)).toEqual(["coverage.csv"]);
  expect(await readFile(path.join(context.folder, "coverage.csv"), "utf8")).toBe("the one of yesterday");
});

/** Starts a dump of more bytes than the pipe to its reader can hold. */
async function startLongDump({ folder }: ProgramContext) {
  await storeDays(20_000);
  const env = { DATABASE_URL: url, LOG_LEVEL: "warn" };
  return spawn(process.execPath, [MAIN, ...COVERAGE, "csv"], { cwd: folder, env });
}

test("a dump whose reader closes the pipe ends without a failure", async ({ context }) => {
  const dump = await startLongDump(context);
  const errors = text(dump.stderr);
  const closed = once(dump, "close");
  await once(dump.stdout, "data");
  dump.stdout.destroy();
  expect({ ended: await closed, errors: await errors }).toEqual({ ended: [0, null], errors: "" });
});

test("a signal ends a dump whose reader reads nothing", async ({ context }) => {
  const dump = await startLongDump(context);
  // A listener makes Node fill its buffer, from which nothing is read.
  dump.stdout.once("readable", () => {});
  await expect.poll(() => dump.stdout.readableLength).toBeGreaterThanOrEqual(dump.stdout.readableHighWaterMark);
  dump.kill("SIGTERM");
  expect(await once(dump, "exit")).toEqual([1, null]);
});

test.for([
  [{ view: "usage_totl" }, '--view: schema bi has no view "usage_totl"; did you mean "usage_total"?'],
  [{ from: "2026-03-17", to: "2026-03-16" }, "--from: expected a day up to --to (2026-03-16); got 2026-03-17"],
  [{ view: "freshness", from: "2026-03-17" }, "--from, --to: bi.freshness has no column with a day"],
  [{ format: undefined, out: "coverage.xlsx" }, "--format: expected csv or jsonl, or --out with a file"],
  [{ changedSince: "beginning" }, "--changed-since: expected one of the views"],
  [{ changedSince: "beginning", out: "-" }, "--changed-since: expected --out with a file"],
  [{ changedSince: "yesterday" }, "--changed-since: expected beginning or a moment"],
  [{ out: "no/such/x.csv" }, "--out: expected a file in an existing folder, got no/such/x.csv"],
] as const)("with the options %j nothing is written", async ([part, message], { context }) => {
  const app = await openApp({ DATABASE_URL: url }, "jobs.config.json", new AbortController().signal);
  const dump = runDump(app, { view: "coverage", format: "csv", out: path.join(context.folder, "x.csv"), ...part });
  await expect(dump).rejects.toMatchObject({ code: "config", message: expect.stringContaining(message) });
  expect(await readdir(context.folder)).toEqual([]);
});

test("--changed-since writes the days that changed since the previous dump", async ({ context }) => {
  const { seriesId } = await newSeries(db, "endpoint", { project: { id: "p1", name: "production" } });
  const dump = async (since: string) => {
    const args = ["dump", "--view", "usage_by_endpoint", "--out", "copies/usage.jsonl", "--changed-since", since];
    const { stdout } = await context.run(args);
    const datesIn = async (file: string) => {
      const lines = jsonLines(await readFile(path.join(context.folder, "copies", file), "utf8"));
      return lines.map(({ usage_date }) => usage_date);
    };
    const [days, rows] = [await datesIn("usage.days.jsonl"), await datesIn("usage.jsonl")];
    return { days, rows, next: /next time: --changed-since (\S+)\n/.exec(stdout)?.[1] ?? "" };
  };
  await mkdir(path.join(context.folder, "copies"));
  await db.transaction().execute(async (tx) => {
    await sql`select pg_current_xact_id()`.execute(tx);
    await store(db, seriesId, [sliceOn("2026-03-17", [rowOf("listen", "1")])]);
    // The open transaction is older than every change, so the next dump has to begin at the beginning again.
    expect((await dump("beginning")).next).toBe("beginning");
  });
  await store(db, seriesId, [sliceOn("2026-03-18", [rowOf("listen", "1")])]);
  const first = await dump("beginning");
  expect(first).toMatchObject({ days: ["2026-03-17", "2026-03-18"], rows: ["2026-03-17", "2026-03-18"] });
  await store(db, seriesId, [sliceOn("2026-03-17", [])], { emptyGuard: "off" });
  // A dump begins at the newest change of the previous dump, so the day of that change is dumped again.
  const second = await dump(first.next);
  expect(second).toMatchObject({ days: ["2026-03-17", "2026-03-18"], rows: ["2026-03-18"] });
});
