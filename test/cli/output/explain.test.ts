// The commands `explain` and `report`: the sentences and tables that say why usage rose or fell, and the file that a report is written to.
// Some tests export the usage from the emulator, others store it themselves.

import { mkdir, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import type { Change } from "../../../src/facts/changes.ts";
import { periodText } from "../../../src/show/format.ts";
import { storeSeries } from "../../db/reported-usage.ts";
import { storeBills, storeHourPrices } from "../../db/stored-charges.ts";
import { newProject } from "../../db/stored-usage.ts";
import { databaseTest, programTest } from "../program-context.ts";
import { PROJECT_ID } from "../small-config.ts";

const { test, db } = await databaseTest();
/** The program gets the address of a database that does not exist. */
const testWithoutDatabase = programTest();

const today = dayOf(new Date());
const yesterday = addDays(today, -1);
/** The day that yesterday is compared with: the same weekday. */
const weekBefore = addDays(yesterday, -7);
const YESTERDAY = periodText({ start: yesterday, end: yesterday });
/** A sentence about both days has a year that they share only once, after yesterday. */
const WEEK_BEFORE = periodText({ start: weekBefore, end: weekBefore }).replace(`, ${yesterday.slice(0, 4)}`, "");

type Json = { readonly changes: readonly Change[] };

test("the parts of each breakdown add up to the change that bi.usage_total shows", async ({ context }) => {
  await context.setUp({ exports: [{ groupings: ["none", "model", "accessor", "tags"], window: { days: 8 } }] });
  await context.run(["export"]);

  const { rows } = await sql<{ before: string; amount: string; change: string }>`
    select trim_scale(b.requests)::text as before, trim_scale(a.requests)::text as amount,
      trim_scale(a.requests - b.requests)::text as change
    from bi.usage_total a join bi.usage_total b using (project_id)
    where a.usage_date = ${yesterday}::date and b.usage_date = ${weekBefore}::date
  `.execute(db);
  const json = await context.run(["explain", "--day", yesterday, "--json"]);
  expect(json.status).toBe(0);
  const { changes } = JSON.parse(json.stdout) as Json;
  expect(changes).toMatchObject([{ answer: { question: { metric: "requests" }, total: rows[0] } }]);
  expect(changes[0]?.splits.map(({ grouping }) => grouping).sort()).toEqual(["accessor", "model", "tags"]);
  for (const { parts } of changes[0]?.splits ?? [])
    expect(parts.reduce((sum, { change }) => sum + BigInt(change), 0n)).toBe(BigInt(rows[0]?.change ?? ""));

  const { status, stdout } = await context.run(["explain", "--day", yesterday, "--grouping", "model", "--limit", "2"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(
    new RegExp(`^Requests (rose|fell) by [0-9.]+%, from .* \\(${WEEK_BEFORE}\\) to .* \\(${YESTERDAY}\\)\\.\\n`),
  );
  expect(stdout).toContain(`1 day is not final yet and may still change: ${YESTERDAY}.`);
  expect(stdout).toMatch(
    /\n *before +after +change +Requests by model\n(.+ changed {2}\S.*\n){2}.* \d+ others?\n.* total\n/,
  );
});

test("a hostile name stays on its line of the table, without control characters", async ({ context }) => {
  const hostile = [
    "several\r\nlines\nRequests fell by 99%",
    "\u202egnp.exe",
    "\u001b[31mred",
    "x".repeat(500),
    "",
    "日本語の音声認識モデル",
    ...["dictation", "captions"].map((team) => `of the department of clinical documentation, ${team}`),
  ];
  const rows = hostile.map((name, i) => [name, { requests: String(i + 1) }] as const);
  const project = newProject();
  await storeSeries(db, [{ project, grouping: "model", usage: { [weekBefore]: rows.slice(0, 1), [yesterday]: rows } }]);
  const { stdout } = await context.run(["explain", "--day", yesterday, "--limit", "10"]);
  expect([..."\u202e\u001b\r"].filter((char) => stdout.includes(char))).toEqual([]);
  const [, table = ""] = stdout.split("\n\n");
  // Besides the rows, the table has a head, a total, and nothing after its last line break.
  expect(table.split("\n")).toHaveLength(hostile.length + 3);
  expect(table).toContain("  several lines Requests fell by 99%\n");
  for (const team of ["dictation", "captions"]) expect(table).toContain(`documentation, ${team}\n`);
  // A long name is cut in its middle, to 200 characters.
  expect(table).toContain(`  ${"x".repeat(133)}…${"x".repeat(66)}\n`);
  expect(table).toMatch(/ \+2 +new {2}gnp\.exe\n/);
});

test("explain says that no usage of the day is stored", async ({ context }) => {
  expect(await context.run(["explain", "--day", today])).toMatchObject({ status: 0 });
  const stdout =
    "No usage of this kind is stored for 2026-03-02 or 2026-02-23; usage-export status says what is missing.\n";
  expect(await context.run(["explain", "--day", "2026-03-02"])).toMatchObject({ status: 0, stdout });
});

test("explain says what a cost needs", async ({ context }) => {
  const needs = expect.stringContaining('or "prices" in the configuration and usage that is read by model');
  expect(await context.run(["explain", "--metric", "cost"])).toMatchObject({ status: 0, stdout: needs });
});

test("the error for an unknown project suggests the nearest name", async ({ context }) => {
  const project = { ...newProject(), name: "production" };
  await storeSeries(db, [{ project, grouping: "none" }]);
  const stderr = expect.stringContaining(
    `--project: no usage of a project "producton" was ever exported; did you mean "production"?`,
  );
  expect(await context.run(["explain", "--project", "producton"])).toMatchObject({ status: 2, stderr });
});

test("only projects without billing have an estimated cost", async ({ context }) => {
  const [billed, other] = [
    { id: PROJECT_ID, name: "production" },
    { id: "other", name: "other" },
  ];
  const usage = { [weekBefore]: [["nova", { hours: "10" }]], [yesterday]: [["nova", { hours: "30" }]] } as const;
  await storeSeries(db, [
    { project: billed, grouping: "model", usage },
    { project: other, grouping: "model", usage },
  ]);
  await storeBills(db, billed, ["line_item", "none"], { start: weekBefore, end: yesterday }, [
    { day: weekBefore, line_item: "streaming::nova-3", dollars: "1.5" },
    { day: yesterday, line_item: "streaming::nova-3", dollars: "1.75" },
    { day: yesterday, line_item: "sync::aura-2", dollars: "0.0000000000000000000000000025" },
  ]);
  await storeHourPrices(db, ["nova", "USD", "0.5"]);
  const { status, stdout } = await context.run(["explain", "--day", yesterday, "--metric", "cost"]);
  expect(status).toBe(0);
  expect(stdout).toContain(`Billed cost rose by 17%, from $1.50 (${WEEK_BEFORE}) to $1.75 (${YESTERDAY}).`);
  expect(stdout).toContain("sync::aura-2 +$0.0000000000000000000000000025 (new)");
  expect(stdout).toMatch(/\n +1.5 +1.75 +\+0.25 +changed {2}streaming::nova-3\n/);
  expect(stdout).toMatch(/\n +1.5 +1.7500000000000000000000000025 +\+0.2500000000000000000000000025 +total\n/);
  expect(stdout).toContain(`Estimated cost rose by 200%, from $5.00 (${WEEK_BEFORE}) to $15.00 (${YESTERDAY})`);
  expect(stdout).toContain("Projects in it: other.");
});

test("a name that two projects had means the project that is still read", async ({ context }) => {
  const name = "production";
  const oldUsage = { [yesterday]: [["", { requests: "1000" }]] } as const;
  const usage = { [weekBefore]: [["", { requests: "1" }]], [yesterday]: [["", { requests: "3" }]] } as const;
  await storeSeries(db, [{ project: { id: "old", name }, grouping: "none", usage: oldUsage }]);
  // The old project is not read any more: each call replaces the configured series.
  await storeSeries(db, [{ project: { id: "current", name }, grouping: "none", usage }]);
  const { stdout } = await context.run(["explain", "--day", yesterday, "--project", "production", "--json"]);
  expect(JSON.parse(stdout).changes).toMatchObject([{ answer: { total: { before: "1", amount: "3" } } }]);
});

const HTML = /^<!doctype html>\n[\s\S]*<\/html>\n$/;

test("a report is one file", async ({ context }) => {
  await context.setUp({ exports: [{ groupings: ["none", "model", "tags"] }] });
  await context.run(["export"]);

  const { status, stdout, stderr } = await context.run(
    ["report", "--from", addDays(today, -2), "--project", "production"],
    { LOG_LEVEL: "warn" },
  );
  expect(stdout).toContain(`usage-report.html: usage from ${addDays(today, -2)} to ${yesterday}. `);
  expect(stdout).toMatch(/ hours/);
  expect(stdout).not.toMatch(/too low|not read/);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const page = await readFile(path.join(context.folder, "usage-report.html"), "utf8");
  expect(page).toMatch(HTML);
  expect(page).toContain("nova-3");
  expect(page).toContain("project <bdi>production</bdi>");
  expect(await readdir(context.folder)).toEqual(["jobs.config.json", "usage-report.html"]);
});

test("a report is made even if days could not be read", async ({ context }) => {
  await context.setUp({}, { fault: () => ({ kind: "body", change: () => ({}) }) });
  await context.run(["export"]);
  const { status, stdout } = await context.run(["report", "--out", "late.html"]);
  expect(stdout).toMatch(
    /^late\.html: usage from .* There are no numbers for [^.]*, which could not be read\. Not read: [^.]*\.\n$/,
  );
  expect(status).toBe(0);
  expect(await readFile(path.join(context.folder, "late.html"), "utf8")).toMatch(HTML);
});

test("a report can be made without any usage", async ({ context }) => {
  const says = expect.stringMatching(/^usage-report\.html: usage from .* There are no numbers yet\.\n$/);
  expect(await context.run(["report"])).toMatchObject({ status: 0, stdout: says });
});

test("report --out - writes to standard output", async ({ context }) => {
  expect(await context.run(["report", "--out", "-"])).toMatchObject({ status: 0, stdout: expect.stringMatching(HTML) });
  expect(await readdir(context.folder)).toEqual([]);
});

testWithoutDatabase.for([
  [`explain --day ${addDays(today, 1)}`, `--day: ${addDays(today, 1)} has not begun; today is ${today} in UTC`],
  [`explain --day ${today} --to ${today}`, "--day: expected without --from and --to, which name the days as well"],
  ["explain --metric dollars", "Allowed choices are hours, total_hours"],
  ["explain --limit 0", "expected a whole number from 1 to 1000"],
  ["report --from 2026-02-30", "expected a day that exists"],
  ["report --out no/such/x.html", "--out: expected a file in an existing folder, got no/such/x.html"],
  ["report --out folder", "--out: expected the name of a file, got folder"],
  ["report --out /dev/null", "--out: expected the name of a file, got /dev/null"],
] as const)("%s is refused before the database is opened", async ([command, message], { context }) => {
  await mkdir(path.join(context.folder, "folder"));
  const { status, stderr } = await context.run(command.split(" "));
  expect(stderr).toContain(message);
  expect({ status, files: await readdir(context.folder) }).toEqual({ status: 2, files: ["folder"] });
});
