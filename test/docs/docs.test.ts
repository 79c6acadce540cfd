// Compares README.md and docs/ with the program: whatever they name exists, every command, metric and condition is named, links
// lead somewhere, and the queries and marked shell blocks run.

import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import type { Command } from "commander";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { defineCommands } from "../../src/cli/commands.ts";
import { parseConfig } from "../../src/config/config.ts";
import { configJsonSchema } from "../../src/config/schema.ts";
import { TRAITS } from "../../src/facts/conditions.ts";
import { testMetrics } from "../health/test-metrics.ts";
import { copyDatabase, testDatabase } from "../support/database.ts";
import { startEmulator } from "../support/emulator.ts";
import { MAIN } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const README_BYTES_MAX = 9_000;
const PICTURE_BYTES_MAX = 150_000;
/** Pages for people who change the program. They also name options of other programs. */
const NOT_FOR_USERS = ["docs/architecture.md", "docs/benchmarks.md"];

/** Examples of budgets on billed dollars are valid only beside an export of billing. */
const BILLS = { name: "bills", source: "billing", schedule: "45 2 * * *", window: { days: 31 }, groupings: ["none"] };

const pages = ["README.md", ...fs.globSync("docs/*.md", { cwd: ROOT }).sort()];
const userPages = pages.filter((page) => !NOT_FOR_USERS.includes(page));
const userText = userPages.map(read).join("\n");

test("the README begins with the commands of the demo and of the tests", () => {
  const commands = (blocksOf("README.md", "sh")[0] ?? "").split("\n").map((line) => line.replace(/ *#.*/, ""));
  expect(commands.filter(Boolean)).toEqual(["npm ci && npm run demo", "npm cit"]);
});

test("the README and the pictures of the pages are small", () => {
  expect(Buffer.byteLength(read("README.md"))).toBeLessThanOrEqual(README_BYTES_MAX);
  const pictures = pages.flatMap((page) =>
    [...read(page).matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, file = ""]) => path.join(path.dirname(page), file)),
  );
  expect(pictures).toContain("docs/dashboard.png");
  for (const file of pictures) expect(fs.statSync(path.join(ROOT, file)).size).toBeLessThanOrEqual(PICTURE_BYTES_MAX);
});

test.each([...pages, "CONTRIBUTING.md", "SECURITY.md"])("the links of %s lead somewhere", (page) => {
  const broken = [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^https?:/.test(target))
    .filter((target) => {
      const [file = "", anchor] = target.split("#");
      const linked = file === "" ? page : path.join(path.dirname(page), file);
      if (!fs.existsSync(path.join(ROOT, linked))) return true;
      return anchor !== undefined && !anchorsOf(read(linked)).includes(anchor);
    });
  expect(broken).toEqual([]);
});

const commands = commandsBelow(defineCommands("0.0.0", () => {}));

test("the table of commands has exactly the program's commands", () => {
  const named = firstCells(sectionOf("docs/operations.md", "Commands"));
  expect(named.sort()).toEqual(commands.map(({ name }) => name).sort());
});

test.each(commands)("the options of $name are documented", ({ options }) => {
  const documented = new Set(userText.match(/--[a-z][a-z-]+/g));
  expect(options.filter((option) => !documented.has(option))).toEqual([]);
});

test("every option that the pages name exists", () => {
  const known = new Set(["--help", "--version", "--config", ...commands.flatMap(({ options }) => options)]);
  const named = [...withoutBlocks(userText).matchAll(/`[^`]*`/g)]
    .map(([code]) => code)
    .filter((code) => !/docker|kubectl|psql|npm install/.test(code))
    .flatMap((code) => code.match(/--[a-z][a-z-]+/g) ?? []);
  expect([...new Set(named)].filter((option) => !known.has(option))).toEqual([]);
});

const FIELDS = fieldsOf(JSON.parse(JSON.stringify(configJsonSchema())), "").filter(({ field }) => field !== "$schema");

test("the tables of the configuration are made of its schema", async () => {
  const marked = /(?<=<!-- fields: (.*) -->\n)(?:\|.*\n)*/g;
  const fieldsIn = (paths: string) =>
    FIELDS.filter(({ field }) => paths.split(" ").some((start) => field.startsWith(start)));
  const page = read("docs/configuration.md");
  const made = page.replaceAll(marked, (_, paths: string) => {
    const rows = fieldsIn(paths).map(({ field, byDefault, text }) => `| \`${field}\` | ${byDefault} | ${text} |\n`);
    return `| Field | Default | Meaning |\n| --- | --- | --- |\n${rows.join("")}`;
  });
  // `--update` writes the tables anew.
  await expect(made).toMatchFileSnapshot("../../docs/configuration.md");
  expect(FIELDS.filter(({ field }) => !made.includes(`| \`${field}\` |`))).toEqual([]);
});

/** An example is a whole export, some fields of one (with `groupings`), or top-level fields. The README's configuration completes it. */
test.each(blocksOf("docs/configuration.md", "json"))("the program accepts this example: %s", (example) => {
  const written = JSON.parse(blocksOf("README.md", "json")[0] ?? "");
  const part = JSON.parse(example.startsWith("{") ? example : `{${example}}`);
  const [nightly] = written.exports;
  const isExport = "groupings" in part;
  let jobs = [nightly, BILLS];
  if (isExport) jobs = "name" in part ? [nightly, { ...BILLS, ...part }] : [{ ...nightly, ...part }];
  const config = isExport ? written : { ...written, ...part };
  const projects = config.projects.map(({ discover, name }: { discover?: true; name: string }) =>
    discover ? "*" : name,
  );
  const exports = jobs.map((job) => ({ ...job, projects }));

  const text = JSON.stringify({ ...config, exports }).replaceAll('"PROJECT_ID"', '"p1"');
  parseConfig(text, "an example", ROOT);
});

test("the table of metrics has exactly the program's metrics", async () => {
  const { body: text } = await testMetrics().scrape();
  const names = [...text.matchAll(/^# TYPE (usage_export_\w+)/gm)].map(([, name]) => name);
  expect(firstCells(sectionOf("docs/monitoring.md", "Metrics")).sort()).toEqual(names.sort());
});

test("the table of conditions has exactly the program's conditions", () => {
  const named = firstCells(sectionOf("docs/monitoring.md", "Conditions"));
  expect(named.sort()).toEqual(Object.keys(TRAITS).sort());
});

const { db } = await testDatabase();
/** The columns of functions can't have comments in the database, so the page describes them by hand. */
const CHANGE_FUNCTIONS = ["usage_change", "cost_change", "billed_change"];

test.each(CHANGE_FUNCTIONS)("the page of the views has every column and argument of bi.%s", async (name) => {
  const { rows } = await sql<{ columns: string[]; named: string[] }>`
    select array_agg(name) filter (where mode = 't') as columns, array_agg(name) filter (where mode = 'i') as named
    from pg_proc cross join lateral unnest(proargnames, proargmodes) as argument (name, mode)
    where pronamespace = 'bi'::regnamespace and proname = ${name}
  `.execute(db);
  const [common = "", ...sections] = sectionOf("docs/bi-views.md", "Comparing two periods").split(/^(?=### )/m);
  const section = sections.find((one) => one.startsWith(`### \`bi.${name}(`)) ?? "";
  expect([...firstCells(common), ...firstCells(section)].sort()).toEqual(rows[0]?.columns.toSorted());
  // The first two arguments are passed without names.
  const [, , ...optional] = rows[0]?.named ?? [];
  expect(optional.filter((argument) => !common.includes(`\`${argument}\``))).toEqual([]);
});

const queries = pages.flatMap((page) => blocksOf(page, "sql").map((query) => ({ page, query })));

test.each(queries)("a query of $page runs: $query", async ({ query }) => {
  const rollBack = new Error("all worked");
  const run = db.transaction().execute(async (tx) => {
    await sql.raw(query).execute(tx);
    throw rollBack;
  });
  await expect(run).rejects.toBe(rollBack);
});

test("the README's configuration and commands work in an empty project folder", async () => {
  const key = "0123456789abcdef0123456789abcdef01234567";
  const consoleKeys = [{ secret: key, projectId: "trial", scopes: ["project:read", "usage:read"] }];
  await using emulator = await startEmulator({ consoleKeys });
  await using copy = await copyDatabase();
  const folder = temporaryFolder(onTestFinished);
  const [config = ""] = blocksOf("README.md", "json");
  const forEmulator = config.replace("https://api.deepgram.com", emulator.url).replace('"PROJECT_ID"', '"trial"');
  fs.writeFileSync(path.join(folder, "jobs.config.json"), forEmulator);
  // Stands in for the installed package, which `npm run test:package` tests.
  const npx = `#!/bin/sh\nshift\nexec "${process.execPath}" "${MAIN}" "$@"\n`;
  fs.writeFileSync(path.join(folder, "npx"), npx, { mode: 0o755 });
  const env = { PATH: `${folder}:${process.env.PATH}`, DATABASE_URL: copy.url, USAGE_EXPORT_KEY: key };
  const [[, script = ""] = [], ...others] = read("README.md").matchAll(/<!-- test runs this -->\s+```sh\n([^`]+)```/g);
  expect(others).toEqual([]);
  const { stdout } = await promisify(execFile)("sh", ["-e", "-c", script], { cwd: folder, env });
  expect(stdout).toContain("complete");
});

type Schema = {
  readonly description?: string;
  readonly default?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
};

type Field = { readonly field: string; readonly byDefault: string; readonly text: string };

/** All fields, including nested ones. Of alternatives only a list of objects is followed: the field's text describes the others. */
function fieldsOf({ properties = {}, required = [], items, anyOf = [] }: Schema, at: string): Field[] {
  if (items?.properties) return fieldsOf(items, `${at}[]`);
  const list = anyOf.find((alternative) => alternative.items?.properties);
  if (list) return fieldsOf(list, at);
  return Object.entries(properties).flatMap(([name, schema]) => {
    const field = at === "" ? name : `${at}.${name}`;
    const { default: value, description: text = "" } = schema;
    const byDefault = required.includes(name) ? "" : value === undefined ? "none" : `\`${JSON.stringify(value)}\``;
    const self = { field, byDefault, text };
    // Inside are the service's dimensions, which the table does not list.
    if (name === "dimensions") return [self];
    // A filter and an entry of `projects` have one of two shapes each.
    const shapes = name === "filters" || field === "projects" ? (schema.items?.anyOf ?? []) : [];
    const inside = shapes.length > 0 ? shapes.flatMap((one) => fieldsOf(one, `${field}[]`)) : fieldsOf(schema, field);
    return at === "" && inside.length > 0 ? inside : [self, ...inside];
  });
}

function commandsBelow(parent: Command, prefix = ""): { name: string; options: string[] }[] {
  return parent.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    const options = command.options.map(({ long }) => long ?? "");
    return [{ name, options }, ...commandsBelow(command, `${name} `)];
  });
}

function read(file: string): string {
  return fs.readFileSync(path.join(ROOT, file), "utf8");
}

function sectionOf(page: string, heading: string): string {
  const section = read(page)
    .split(/^(?=## )/m)
    .find((one) => one.startsWith(`## ${heading}\n`));
  if (section === undefined) throw new Error(`${page} has no section "${heading}"`);
  return section;
}

/** The names in backquotes in the first cell of every table row. */
function firstCells(text: string): string[] {
  const cells = [...text.matchAll(/^\| (.*?)(?<!\\)\|/gm)].map(([, cell = ""]) => cell.replaceAll("\\|", "|"));
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
}

function blocksOf(page: string, language: string): string[] {
  return [...read(page).matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, "gm"))].map(
    ([, block = ""]) => block,
  );
}

function withoutBlocks(text: string): string {
  return text.replaceAll(/^ *```[\s\S]*?^ *```/gm, "");
}

function withoutCode(text: string): string {
  return withoutBlocks(text).replaceAll(/`[^`\n]*`/g, "code");
}

/** The anchors that GitHub makes of the headings. */
function anchorsOf(text: string): string[] {
  return [...withoutBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}
