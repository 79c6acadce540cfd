// Checks which files may import what, and what a file may do.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const SRC = path.join(import.meta.dirname, "../src");

/** Files of src/ that open and connect nothing. Every folder may import them, except for the folders in WITHOUT_COMMON. */
const COMMON = ["async", "command", "decimal", "errors", "files", "heap", "package-files", "proxy", "secret", "text"];

/** What the files of a folder, without its subfolders, may import besides COMMON and packages: folders, files of src/, or "all". */
const MAY_IMPORT: Readonly<Record<string, readonly string[] | "all">> = {
  ...{ ".": "all", cli: "all", worker: "all" },
  jobs: [
    ...["app.ts", "open-service.ts"],
    ...["config", "db", "db/connection", "db/jobs", "db/keys", "db/usage", "keys", "schedule", "service", "usage"],
  ],
  usage: [],
  keys: ["config/rotations.ts", "show/format.ts", "usage/days.ts"],
  service: ["proxy-agent.ts", "usage"],
  config: ["keys/scopes.ts", "service/client-types.ts", "usage"],
  "db/connection": ["db/jobs/queue.ts", "db/schema.ts", "usage/dimensions.ts", "usage/metrics.ts"],
  "db/usage": ["db/connection", "db/jobs", "usage"],
  "db/jobs": ["db/connection", "db/schema.ts", "usage"],
  "db/keys": ["config/rotations.ts", "db/connection", "db/schema.ts", "keys", "usage"],
  facts: [
    ...["config", "db", "db/connection", "db/jobs", "db/keys", "db/usage", "keys", "schedule", "usage"],
    // The texts of conditions and warnings are facts, too.
    "show/format.ts",
  ],
  db: ["config/money.ts", "db/connection", "db/jobs", "keys", "usage"],
  schedule: ["db/jobs"],
  web: ["facts", "show", "usage"],
  // Runs in the browser: nothing of Node.
  "web/client": ["show/answer-chart.ts", "show/format.ts"],
  "web/dashboard": ["facts", "show", "usage", "web"],
  show: ["facts", "keys/rotation-plan.ts", "usage"],
  // The tests compare the product with the emulator. It shares lists with the product but no arithmetic: both would have the same bug.
  emulator: ["usage/dimensions.ts", "usage/metrics.ts"],
};
const WITHOUT_COMMON = ["emulator", "web/client"];

/** Packages that only these folders and files may import. */
const ONLY_IN: Readonly<Record<string, readonly string[]>> = {
  kysely: ["db", "facts"],
  pg: ["db/connection/database.ts"],
  "@electric-sql/pglite": ["db/connection/database.ts"],
  "pg-boss": ["db/jobs/queue.ts"],
  undici: ["proxy-agent.ts", "service/client.ts", "worker/webhook.ts"],
  "prom-client": ["show/prometheus.ts"],
  jose: ["keys/seal.ts"],
  commander: ["cli/commands.ts"],
  croner: ["schedule/schedule.ts", "config/fields.ts"],
  "node-cron": ["schedule/schedule.ts", "config/fields.ts"],
  echarts: ["web/client"],
  hono: ["web/routes.ts"],
};

/** Packages whose functions are pure. */
const PURE_PACKAGES = /^(zod|leven|jsonc-parser|echarts\/.+|echarts|node:path|node:util|date-fns\/\w+)$/;
/** A hash is pure, unlike the rest of its package. */
const PURE_IMPORT = 'import { hash } from "node:crypto";';
const IMPURE =
  /\bDate\.now\b|\bnew (UTC)?Date\(\)|\bMath\.random\b|\bperformance\b|\bprocess\b|\bset(Timeout|Interval|Immediate)\b|\bfetch\(|\bcrypto\b|\bimport\(/;

const files = fs.globSync("**/*.ts", { cwd: SRC }).sort();
const pure = files.filter((file) => /\bPure\b/.test(opening(file)));

test("MAY_IMPORT has every folder", () => {
  expect(Object.keys(MAY_IMPORT).sort()).toEqual([...new Set(files.map(folderOf))].sort());
});

test.each(files)("%s imports only what its folder may", (file) => {
  const allowed = MAY_IMPORT[folderOf(file)] ?? [];
  const common = WITHOUT_COMMON.includes(folderOf(file)) ? [] : COMMON.map((name) => `${name}.ts`);
  const outside = importedFiles(file).filter((imported) => folderOf(imported) !== folderOf(file));
  const forbidden = outside.filter(
    (imported) =>
      allowed !== "all" && ![...common, ...allowed].some((one) => one === imported || one === folderOf(imported)),
  );
  expect(forbidden, `${folderOf(file)}/ may import ${allowed} (MAY_IMPORT), and ${file} imports`).toEqual([]);
});

const PAGE = fs.readFileSync(path.join(SRC, "../docs/architecture.md"), "utf8");

test("docs/architecture.md describes every folder", () => {
  const named = [...PAGE.matchAll(/^\| `src\/(.*?)\/?` \| \S/gm)].map(([, folder]) => folder || ".");
  expect(named.sort()).toEqual(Object.keys(MAY_IMPORT).sort());
});

test("the files and functions that docs/architecture.md names exist", () => {
  const named = [...PAGE.matchAll(/`([\w/-]+\.ts)`: `(\w+)`/g)];
  expect(named.length).toBeGreaterThan(30);
  const missing = named.filter(([, file = "", name = ""]) => !files.includes(file) || !declares(file, name));
  expect(missing.map(([text]) => text)).toEqual([]);
});

test("only main.ts imports the command line", () => {
  const importers = files.filter((file) => importedFiles(file).some((imported) => folderOf(imported) === "cli"));
  expect(importers.filter((file) => folderOf(file) !== "cli")).toEqual(["main.ts"]);
});

test("no files import each other in a circle", () => {
  expect(files.flatMap((file) => circleThrough(file))).toEqual([]);
});

test.each(Object.entries({ export: 90, keys: 40, health: 40 }))("%s loads at most %i files", (command, filesMax) => {
  const loaded = new Set([`cli/${command}.ts`]);
  for (const file of loaded) for (const imported of importedFiles(file)) loaded.add(imported);
  expect([...loaded].sort().slice(filesMax)).toEqual([]);
  // Fewer files would mean that not all imports are found.
  expect(loaded.size).toBeGreaterThan(20);
});

test.each(files)("%s imports no package that only other files may import (ONLY_IN)", (file) => {
  const misplaced = importsOf(file).filter((target) => {
    const owned = Object.entries(ONLY_IN).find(([name]) => target === name || target.startsWith(`${name}/`));
    return owned !== undefined && !owned[1].some((place) => place === file || file.startsWith(`${place}/`));
  });
  expect(misplaced).toEqual([]);
});

test.each(pure)("%s is pure", (file) => {
  const code = codeOf(file).replace(PURE_IMPORT, "");
  expect(importsIn(code).filter((target) => !target.startsWith(".") && !PURE_PACKAGES.test(target))).toEqual([]);
  expect(code).not.toMatch(IMPURE);
});

test.each(files.filter((file) => path.basename(file) !== "main.ts"))(
  "%s leaves starting and exiting to main.ts",
  (file) => {
    expect(codeOf(file)).not.toMatch(/^(await|for|if|try|[\w.]+\()/m);
    expect(codeOf(file)).not.toMatch(/\bprocess\.exit/);
  },
);

function folderOf(file: string): string {
  return path.posix.dirname(file);
}

/** The files of src/ that a file imports, types included. */
function importedFiles(file: string): string[] {
  return importsOf(file)
    .filter((target) => target.startsWith("."))
    .map((target) => path.posix.join(folderOf(file), target));
}

/** The shortest chain of imports from a file back to itself, such as ["a.ts → b.ts → a.ts"]; empty if there is none. */
function circleThrough(file: string): string[] {
  const chains = importedFiles(file).map((imported) => [file, imported]);
  const seen = new Set<string>();
  // The loop also visits the chains that it adds.
  for (const chain of chains) {
    const last = chain.at(-1) ?? file;
    if (last === file) return [chain.join(" → ")];
    if (!seen.has(last)) chains.push(...importedFiles(last).map((imported) => [...chain, imported]));
    seen.add(last);
  }
  return [];
}

function importsOf(file: string): string[] {
  return importsIn(read(file));
}

function importsIn(code: string): string[] {
  return [...code.matchAll(/(?:\bfrom |\bimport\(|^import )"([^"]+)"/gm)].map(([, target = ""]) => target);
}

function declares(file: string, name: string): boolean {
  return new RegExp(`^export (async )?(function|class|const|type) ${name}\\b`, "m").test(read(file));
}

/** The comment at the beginning of a file. */
function opening(file: string): string {
  return /^(\/\/.*\n)*/.exec(read(file))?.[0] ?? "";
}

function codeOf(file: string): string {
  return read(file).replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

function read(file: string): string {
  return fs.readFileSync(path.join(SRC, file), "utf8");
}
