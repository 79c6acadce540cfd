// The command `report`: an export from the emulator, and the file that the report is written to.

import { mkdir, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const test = programTest(database);
/** The program gets the address of a database that does not exist. */
const testWithoutDatabase = programTest();

const today = dayOf(new Date());
const yesterday = addDays(today, -1);
const HTML = /^<!doctype html>\n[\s\S]*<\/html>\n$/;

test("the exported usage of a project is in one file, which names it; the answer has its sentences", async ({
  context,
}) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["none", "model", "tags"] }] }));
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
  const unknown = await context.run(["report", "--project", "producton"]);
  expect(unknown.stderr).toContain(
    `--project: no usage of a project "producton" was ever asked for; did you mean "production"?`,
  );
  expect(unknown.status).toBe(2);
  expect(await readdir(context.folder)).toEqual(["jobs.config.json", "usage-report.html"]);
});

test("if days could not be read, the answer says it, and the report is still made", async ({ context }) => {
  const emulator = await context.serve({ fault: () => ({ kind: "body", change: () => ({}) }) });
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  const { status, stdout } = await context.run(["report", "--out", "late.html"]);
  expect(stdout).toMatch(/^late\.html: usage from .* There are no numbers for [^.]*, which could not be read\.\n$/);
  expect(status).toBe(0);
  expect(await readFile(path.join(context.folder, "late.html"), "utf8")).toMatch(HTML);
});

test("a report can be made without any usage in the database", async ({ context }) => {
  const { status, stdout } = await context.run(["report"]);
  expect(stdout).toMatch(/^usage-report\.html: usage from .* There are no numbers yet\.\n$/);
  expect(status).toBe(0);
});

test("with --out - the report, and nothing else, goes to standard output", async ({ context }) => {
  const { status, stdout } = await context.run(["report", "--out", "-"]);
  expect(stdout).toMatch(HTML);
  expect({ status, files: await readdir(context.folder) }).toEqual({ status: 0, files: [] });
});

testWithoutDatabase.for([
  [["--from", "2026-02-30"], "expected a day that exists"],
  [["--to", addDays(today, 1)], "--to: expected"],
  [["--from", "2026-03-02", "--to", "2026-03-01"], "--from: expected 2026-03-01 or before"],
  [["--from", "2024-01-01", "--to", "2026-01-01"], "at most 366 days"],
  [["--out", "no/such/report.html"], "--out: expected a file in an existing folder, got no/such/report.html"],
  [["--out", "folder"], "--out: expected the name of a file, got folder"],
  [["--out", "/dev/null"], "--out: expected the name of a file, got /dev/null"],
] as const)("%j is refused before the database is opened", async ([args, message], { context }) => {
  await mkdir(path.join(context.folder, "folder"));
  const { status, stderr } = await context.run(["report", ...args]);
  expect(stderr).toContain(message);
  expect({ status, files: await readdir(context.folder) }).toEqual({ status: 2, files: ["folder"] });
});
