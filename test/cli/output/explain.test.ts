// The command `explain`: why usage rose or fell, from an export of the emulator's usage, and from hostile names.

import { sql } from "kysely";
import { expect } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { storePrices } from "../../../src/db/prices-and-budgets.ts";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import type { Change } from "../../../src/facts/changes.ts";
import { periodText } from "../../../src/show/format.ts";
import { storeSeries } from "../../db/reported-usage.ts";
import { storeBills } from "../../db/stored-charges.ts";
import { newProject } from "../../db/stored-usage.ts";
import { testDatabase } from "../../support/database.ts";
import { PROJECT_ID, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);
/** The program gets the address of a database that does not exist. */
const testWithoutDatabase = programTest();

const today = dayOf(new Date());
const yesterday = addDays(today, -1);
/** The day that yesterday is compared with: the same weekday. */
const weekBefore = addDays(yesterday, -7);
const [YESTERDAY, WEEK_BEFORE] = [yesterday, weekBefore].map((day) => periodText({ start: day, end: day }));

type Json = { readonly changes: readonly Change[] };

test("the parts of each breakdown add up to the change that bi.usage_total shows, and the text says how large it is", async ({
  context,
}) => {
  const emulator = await context.serve();
  const groupings = ["none", "model", "accessor", "tags"];
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings, window: { days: 8 } }] }));
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
  expect(stdout).toMatch(/\nRequests by model +before +after +change\n(.+ changed\n){2}\d+ others? .*\ntotal /);
});

test("names are cut to one line of the table, and can't turn the text around", async ({ context }) => {
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
  await storeSeries(db, [{ project, grouping: "model", usage: { [weekBefore]: [], [yesterday]: rows } }]);
  const { stdout } = await context.run(["explain", "--day", yesterday, "--limit", "10"]);
  expect([..."\u202e\u001b\r"].filter((char) => stdout.includes(char))).toEqual([]);
  const [, table = ""] = stdout.split("\n\n");
  expect(table.split("\n")).toHaveLength(hostile.length + 3);
  expect(table).toContain(`several lines Requests fell by 99%`);
  for (const team of ["dictation", "captions"]) expect(table).toContain(`documentation, ${team} `);
});

test("if there is nothing to explain, it says so", async ({ context }) => {
  const { status, stdout } = await context.run(["explain", "--day", "2026-03-02"]);
  expect(stdout).toBe(
    "No usage of this kind is stored for 2026-03-02 or 2026-02-23; usage-export status says what is missing.\n",
  );
  expect(status).toBe(0);
});

test("a project that is not stored is refused, with the name that is nearest", async ({ context }) => {
  const project = { ...newProject(), name: "production" };
  await storeSeries(db, [{ project, grouping: "none" }]);
  const { status, stderr } = await context.run(["explain", "--project", "producton"]);
  expect(stderr).toContain(
    `--project: no usage of a project "producton" was ever asked for; did you mean "production"?`,
  );
  expect(status).toBe(2);
});

testWithoutDatabase.for([
  [["--day", addDays(today, 1)], `--day: ${addDays(today, 1)} has not begun; today is ${today} in UTC`],
  [["--day", yesterday, "--to", yesterday], "--day: expected without --from and --to, which name the days as well"],
  [["--from", "2026-03-02", "--to", "2026-03-01"], "--from: expected 2026-03-01 or before, which is the last day"],
  [["--from", "2024-01-01", "--to", "2026-01-01"], "at most 366 days"],
  [["--metric", "dollars"], "Allowed choices are hours, total_hours"],
  [["--limit", "0"], "expected a whole number from 1 to 1000"],
] as const)("%j is refused before the database is opened", async ([args, message], { context }) => {
  const { status, stderr } = await context.run(["explain", ...args]);
  expect(stderr).toContain(message);
  expect(status).toBe(2);
});

/** Stores the prices as an export with this configuration does. */
async function configurePrices(prices: readonly object[]): Promise<void> {
  const text = JSON.stringify({ ...smallConfig("https://api.example.com"), prices });
  await storePrices(db, parseConfig(text, { source: "test", baseDir: "/" }).prices);
}

test("with prices it says what the change costs", async ({ context }) => {
  const price = { model: "nova", metric: "hours", currency: "USD", per: 1 };
  const prices = [
    { ...price, price: "0.5", from: "2026-01-01", until: weekBefore },
    { ...price, price: "0.6", from: yesterday },
  ];
  const project = { id: PROJECT_ID, name: "production" };
  const usage = { [weekBefore]: [["nova", { hours: "10" }]], [yesterday]: [["nova", { hours: "30" }]] } as const;
  await storeSeries(db, [{ project, grouping: "model", usage }]);
  await configurePrices(prices);
  const { status, stdout } = await context.run(["explain", "--day", yesterday, "--metric", "cost"]);
  expect(status).toBe(0);
  expect(stdout).toContain(`Estimated cost rose by 260%, from $5.00 (${WEEK_BEFORE}) to $18.00 (${YESTERDAY}).`);
  expect(stdout).toMatch(/\nnova +5 +18 +\+13 +changed\ntotal +5 +18 +\+13\n/);
  const json = JSON.parse((await context.run(["explain", "--day", yesterday, "--json"])).stdout);
  expect(json.changes).toMatchObject([{ answer: { question: { currency: "USD" }, total: { change: "13" } } }]);
});

test("with billing it says what the service charges more for, and estimates only the projects without billing", async ({
  context,
}) => {
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
  const prices = [{ model: "nova", metric: "hours", currency: "USD", price: "0.5", from: "2026-01-01" }];
  await configurePrices(prices);
  const { status, stdout } = await context.run(["explain", "--day", yesterday, "--metric", "cost"]);
  expect(status).toBe(0);
  expect(stdout).toContain(`Billed cost rose by 17%, from $1.50 (${WEEK_BEFORE}) to $1.75 (${YESTERDAY}).`);
  expect(stdout).toContain("sync::aura-2 +$0.0000000000000000000000000025 (new)");
  expect(stdout).toMatch(/\nstreaming::nova-3 +1.5 +1.75 +\+0.25 +changed\n/);
  expect(stdout).toMatch(/\ntotal +1.5 +1.7500000000000000000000000025 +\+0.2500000000000000000000000025\n/);
  expect(stdout).toContain(`Estimated cost rose by 200%, from $5.00 (${WEEK_BEFORE}) to $15.00 (${YESTERDAY})`);
  expect(stdout).toContain("Projects in it: other.");
  const json = JSON.parse((await context.run(["explain", "--day", yesterday, "--metric", "cost", "--json"])).stdout);
  expect(json.changes).toMatchObject([
    { answer: { projects: ["production"], total: { change: "0.2500000000000000000000000025" } } },
    { answer: { projects: ["other"], total: { change: "10" } } },
  ]);
});

test("cost without prices says what it needs", async ({ context }) => {
  const { status, stdout } = await context.run(["explain", "--day", yesterday, "--metric", "cost"]);
  expect(status).toBe(0);
  expect(stdout).toContain('or "prices" in the configuration and usage that is read by model');
});

test("of two projects that had one name, the one that is still read is explained", async ({ context }) => {
  const [old, current] = [
    { id: "old", name: "production" },
    { id: "current", name: "production" },
  ];
  await storeSeries(db, [{ project: old, grouping: "none", usage: { [yesterday]: [["", { requests: "1000" }]] } }]);
  await storeSeries(db, [
    {
      project: current,
      grouping: "none",
      usage: { [weekBefore]: [["", { requests: "1" }]], [yesterday]: [["", { requests: "3" }]] },
    },
  ]);
  const { stdout } = await context.run(["explain", "--day", yesterday, "--project", "production", "--json"]);
  expect(JSON.parse(stdout).changes).toMatchObject([{ answer: { total: { before: "1", amount: "3" } } }]);
});
