// Hostile texts as models, tags, comments, errors and names of projects: the database keeps them unchanged and distinct, and they do no
// harm where they are shown.

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { type ProgramContext, programTest } from "../cli/program-context.ts";
import { readCsv } from "../show/read-csv.ts";
import { testDatabase } from "../support/database.ts";
import { ALL, configFor, hostileService, isName, LARGEST, NAMES, TEXTS } from "./hostile-service.ts";
import { readMetrics } from "./metrics-text.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const COMMENT_LENGTH_MAX = 1_000;

test("hostile texts are stored unchanged, and do no harm where they are shown", {
  timeout: 300_000,
}, async ({ context }) => {
  await using service = await hostileService();
  const config = configFor(service);
  await writeFile(path.join(context.folder, "jobs.config.json"), JSON.stringify(config));

  const result = await context.run(["export"]);

  expect(result.status).toBe(1);
  await expectStored();
  expectLog(result.stderr);
  await expectDumps(context);
  await expectPlainAnswers(context);
  await expectReport(context);
  await expectMetrics(context);
});

test("a text that can't be displayed or stored is refused as the name of a project", () => {
  for (const name of ALL.filter((text) => !isName(text))) {
    const config = JSON.stringify(smallConfig("http://127.0.0.1:1", name));
    expect(() => parseConfig(config, { source: "jobs.config.json", baseDir: "/" }), JSON.stringify(name)).toThrow(
      "projects[0].name",
    );
  }
});

function smallConfig(baseUrl: string, name: string) {
  return { service: { baseUrl }, projects: [{ id: "p", name, key: { env: "USAGE_EXPORT_KEY" } }] };
}

/** Postgres can't store NUL: in a model it is written as in JSON, from a comment it is removed. */
const shownModel = (text: string) => text.replaceAll("\0", "\\u0000");
const shownComment = (text: string) =>
  text
    .replaceAll("\0", "")
    .slice(0, COMMENT_LENGTH_MAX)
    .replace(/[\ud800-\udbff]$/, "");

async function expectStored(): Promise<void> {
  const { rows: models } = await sql<{ requests: string; text: string | null }>`
    select requests::text, model as text from bi.usage_by_model order by requests::numeric
  `.execute(db);
  // An empty text is no value.
  expect(models).toEqual(TEXTS.map((text, n) => ({ requests: String(n + 1), text: shownModel(text) || null })));
  const { rows: tags } = await sql<{ tags: string }>`select tags from bi.usage_by_tags u order by u.requests`.execute(
    db,
  );
  expect(tags.map((row) => JSON.parse(row.tags))).toEqual(TEXTS.map((text) => (text === "" ? null : [text])));
  const { rows: keys } = await sql<{ comment: string | null }>`
    select key_comment as comment from bi.usage_by_key u order by u.requests
  `.execute(db);
  // An empty comment is none.
  expect(keys).toEqual(TEXTS.map((text) => ({ comment: shownComment(text) || null })));
  const { rows: projects } = await sql<{ project: string }>`
    select distinct project from bi.coverage where project <> 'values'
  `.execute(db);
  expect(projects.map(({ project }) => project).toSorted()).toEqual(NAMES.toSorted());
  const { rows: errors } = await sql<{ error: string }>`select error from bi.coverage where status = 'failed'`.execute(
    db,
  );
  expect(errors).toHaveLength(TEXTS.length);
  for (const { error } of errors) expect(error).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
}

/** One line is one object, with the fields the program writes. */
function expectLog(stderr: string): void {
  const lines = stderr.split("\n").filter((line) => line !== "");
  expect(lines.length).toBeGreaterThan(TEXTS.length);
  for (const line of lines) {
    const entry: unknown = JSON.parse(line);
    expect(entry).toMatchObject({ level: expect.any(Number), msg: expect.stringMatching(/^[a-z][a-z ,']+$/) });
    expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
  }
}

async function expectDumps(context: ProgramContext): Promise<void> {
  const jsonl = await context.run(["dump", "--view", "usage_by_model", "--format", "jsonl"]);
  expect(jsonl.status, jsonl.stderr).toBe(0);
  const objects = jsonl.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const models = objects.flatMap(({ model }) => model ?? []);
  expect(models.toSorted()).toEqual(
    TEXTS.filter((text) => text !== "")
      .map(shownModel)
      .toSorted(),
  );

  for (const view of ["usage_by_model", "usage_by_tags", "usage_by_key", "coverage"]) {
    const csv = await context.run(["dump", "--view", view, "--format", "csv"]);
    expect(csv.status, csv.stderr).toBe(0);
    const [header, ...records] = readCsv(csv.stdout.replace(/^\ufeff/, ""));
    expect(records.length).toBeGreaterThanOrEqual(TEXTS.length);
    for (const record of records) {
      expect(record).toHaveLength(header?.length ?? 0);
      // A number may begin with a sign; a text that does would be a formula.
      for (const { text } of record) if (!/^-?\d+(?:\.\d+)?$/.test(text)) expect(text).not.toMatch(/^[=+\-@\t\r\0]/);
    }
  }
}

async function expectPlainAnswers(context: ProgramContext): Promise<void> {
  for (const args of [["status"], ["keys"], ["jobs"]]) {
    const { stdout } = await context.run(args);
    expect(stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  }
}

async function expectReport(context: ProgramContext): Promise<void> {
  const { status, stderr } = await context.run(["report", "--out", "report.html"]);
  expect(status, stderr).toBe(0);
  const file = await readFile(path.join(context.folder, "report.html"), "utf8");
  // The page's own script and the data of its charts go, up to the first end: a second script, or a text that ends the data, stays in the
  // text that is searched. A browser runs no other script, by its hash.
  const page = file
    .replace(/<script type="module">[\s\S]*?<\/script>/, "")
    .replaceAll(/<script type="application\/json">[\s\S]*?<\/script>/g, "");
  expect(page.length).toBeLessThan(file.length);
  // All markup has this form: no text breaks out of an attribute's double quotes.
  const tags = [...page.matchAll(/<([^>]*)>/g)].map(([, inside = ""]) => inside);
  for (const tag of tags)
    expect(tag).toMatch(/^(?:!doctype html|\/?[a-z][a-zA-Z0-9-]*(?:\s+[a-zA-Z:_-]+(?:="[^"<>]*")?)*\s*\/?)$/);
  expect(page).not.toMatch(/<\/?(?:script|img|iframe|object|embed|link|base|form)\b/i);
  // A title may contain such a text, for example an error of the service.
  const runsScript = (tag: string) =>
    /\son[a-z]+=/i.test(tag.replaceAll(/"[^"]*"/g, "")) || /="\s*javascript:/i.test(tag);
  expect(tags.filter(runsScript)).toEqual([]);
  expect(page).toContain(LARGEST.replaceAll("<", "&lt;").replaceAll(">", "&gt;"));
}

async function expectMetrics(context: ProgramContext): Promise<void> {
  const worker = context.start(["start"]);
  const url = /http:\/\/[^"\s]+/.exec(await worker.waitFor("monitor listens"))?.[0];
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 20_000 }).toBe(200);
  const samples = readMetrics(await (await fetch(`${url}/metrics`)).text());
  const labelled = new Set(samples.flatMap(({ labels }) => Object.values(labels)));
  expect(samples.length).toBeGreaterThan(50);
  for (const name of [NAMES.find((one) => one.includes('"')), "values"]) expect(labelled).toContain(name);
}
