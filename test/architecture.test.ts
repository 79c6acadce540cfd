// Holds the rules of who may import what, and what a file may do, so that nobody has to remember them.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const SRC = path.join(import.meta.dirname, "../src");

/** What the files of a folder may import besides their own folder and packages. cli/, jobs/, worker/ and the root files wire: they may all. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  usage: ["errors.ts", "secret.ts"],
  keys: ["errors.ts", "printable.ts", "secret.ts", "secret-search.ts"],
  api: [
    ...["errors.ts", "printable.ts", "secret.ts", "secret-search.ts", "batched.ts", "proxy.ts", "proxy-agent.ts"],
    ...["usage", "keys"],
  ],
  db: ["errors.ts", "secret.ts", "batched.ts", "package-files.ts", "usage", "keys", "report", "dump"],
  config: ["errors.ts", "secret.ts", "usage", "keys"],
  schedule: ["errors.ts", "usage"],
  monitor: ["errors.ts", "secret.ts", "proxy.ts", "proxy-agent.ts", "usage", "keys", "report"],
  report: ["errors.ts", "entities.ts", "usage"],
  dump: ["errors.ts", "usage"],
  emulator: ["errors.ts"],
};
const WIRES = ["cli", "jobs", "worker"];

/** Packages that only some places may import: a folder, or a file. */
const ONLY_IN: Readonly<Record<string, readonly string[]>> = {
  kysely: ["db"],
  pg: ["db/database.ts"],
  "@electric-sql/pglite": ["db/database.ts"],
  "pg-boss": ["db"],
  undici: ["proxy-agent.ts", "api/http.ts", "monitor/post.ts"],
  "prom-client": ["monitor"],
  jose: ["keys/seal.ts"],
  commander: ["cli"],
  "cli-progress": ["cli"],
  "node-cron": ["schedule", "config"],
  echarts: ["report"],
  "csv-stringify": ["dump"],
  "hyparquet-writer": ["dump"],
};

/** Files that decide. Other files may say of themselves that they are pure, and are held to it. */
const PURE = [
  ...["plan", "normalise", "slice", "features", "group", "metrics", "answer-dates", "decimal", "exact-number"],
  ...["json-value", "day", "series"],
]
  .map((name) => `usage/${name}.ts`)
  .concat("keys/policy.ts", "keys/plan.ts", "api/retry.ts");

/** Packages whose functions only calculate. */
const PURE_PACKAGES = /^(zod|leven|node:path|date-fns\/\w+|@date-fns\/utc\/date)$/;
const IMPURE =
  /\bDate\.now\b|\bnew (UTC)?Date\(\)|\bMath\.random\b|\bperformance\b|\bprocess\b|\bset(Timeout|Interval|Immediate)\b|\bfetch\(|\bcrypto\b|\bimport\(/;

const files = fs.globSync("**/*.ts", { cwd: SRC }).sort();
const foldered = files.filter((file) => file.includes("/") && !WIRES.includes(folderOf(file)));
const pure = files.filter((file) => PURE.includes(file) || /\bPure\b/.test(opening(file)));

test("every folder but those that wire says what it may import", () => {
  expect(Object.keys(MAY_IMPORT)).toEqual(expect.arrayContaining([...new Set(foldered.map(folderOf))]));
});

test.each(foldered)("%s imports only what its folder may", (file) => {
  const allowed = [folderOf(file), ...(MAY_IMPORT[folderOf(file)] ?? [])];
  for (const target of importsOf(file).filter((one) => one.startsWith("."))) {
    const imported = path.posix.join(path.posix.dirname(file), target);
    expect(allowed).toContain(imported.includes("/") ? folderOf(imported) : imported);
  }
});

test.each(files)("%s imports no package that belongs to another place", (file) => {
  const misplaced = importsOf(file).filter((target) => {
    const owned = Object.entries(ONLY_IN).find(([name]) => target === name || target.startsWith(`${name}/`));
    return owned !== undefined && !owned[1].includes(file) && !owned[1].includes(folderOf(file));
  });
  expect(misplaced).toEqual([]);
});

test("the files that decide are there", () => {
  expect(files).toEqual(expect.arrayContaining(PURE));
});

test.each(pure)("%s is pure", (file) => {
  expect(importsOf(file).filter((target) => !target.startsWith(".") && !PURE_PACKAGES.test(target))).toEqual([]);
  expect(codeOf(file)).not.toMatch(IMPURE);
});

test.each(files.filter((file) => file !== "main.ts"))(
  "%s does nothing when it is imported, and sets no exit status",
  (file) => {
    expect(codeOf(file)).not.toMatch(/^(await|for|if|try|[\w.]+\()/m);
    expect(codeOf(file)).not.toMatch(/\bprocess\.exit/);
  },
);

function folderOf(file: string): string {
  return file.split("/")[0] ?? "";
}

function importsOf(file: string): string[] {
  return [...read(file).matchAll(/(?:\bfrom |\bimport\(|^import )"([^"]+)"/gm)].map(([, target = ""]) => target);
}

/** The lines of comment that a file begins with. */
function opening(file: string): string {
  return /^(\/\/.*\n)*/.exec(read(file))?.[0] ?? "";
}

function codeOf(file: string): string {
  return read(file).replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

function read(file: string): string {
  return fs.readFileSync(path.join(SRC, file), "utf8");
}
