// Follows the recipes of CONTRIBUTING.md: adds a dimension and a metric to a copy of the sources. Nothing else may be needed.

import { execFile } from "node:child_process";
import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addDays, dayOf } from "../../src/usage/days.ts";
import { emptyDatabase } from "../db/connection/empty-database.ts";
import { startScript } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const COPIED = ["src", "migrations", "tsconfig.json", "package.json"];

const DIMENSION = `  {
    name: "region",
    sources: ["usage"],
    description: "The region of the servers.",
    hasEach: true,
    values: { usage: ["us", "eu"] },
  },
`;
const METRIC = `  { name: "words", label: "Words", unit: "requests", meaning: "Words recognised, a count" },
`;

const folder = temporaryFolder(afterAll);
const opened = new AsyncDisposableStack();
afterAll(() => opened.disposeAsync());

let url: string;
let baseUrl: string;

const run = (...args: readonly string[]) => startChanged(args).ended;

function startChanged(args: readonly string[]) {
  const env = { DATABASE_URL: url, USAGE_EXPORT_KEY: "0123456789abcdef0123456789abcdef01234567", LOG_LEVEL: "info" };
  return startScript(path.join(folder, "src/main.ts"), args, { env, cwd: folder });
}

async function insert(file: string, entry: string, before: string): Promise<void> {
  const text = await readFile(path.join(folder, file), "utf8");
  expect(text.split(before)).toHaveLength(2);
  await writeFile(
    path.join(folder, file),
    text.replace(before, () => `${entry}${before}`),
  );
}

beforeAll(async () => {
  for (const name of COPIED) await cp(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  await symlink(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
  await insert("src/usage/dimensions.ts", DIMENSION, "] as const satisfies readonly DimensionEntry[]");
  await insert("src/usage/metrics.ts", METRIC, '  { name: "requests",');

  const database = opened.use(await emptyDatabase());
  url = database.url;
  const emulator = opened.use(startChanged(["emulator", "--dialect", "2026"]));
  baseUrl = /http:\S+/.exec(await emulator.waitFor("emulator answers at"))?.[0] ?? "";
  const config = {
    service: { baseUrl, dialect: "2026", requestsPerSecond: 100 },
    projects: [{ id: "trial", name: "production", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      {
        ...{ name: "nightly", schedule: "15 2 * * *", projects: ["production"], window: { days: 2 } },
        groupings: ["none", "region"],
        filters: [{ name: "all" }, { name: "european", dimensions: { region: "eu" } }],
      },
    ],
    monitor: { port: 0 },
  };
  await writeFile(path.join(folder, "jobs.config.json"), JSON.stringify(config));
});

test("a new dimension and metric need no other change for tables, views, schema and types", async () => {
  expect(await run("migrate")).toMatchObject({ status: 0 });
  expect((await run("schema")).stdout).toMatch(/"The region of the servers\..*"words"/s);
  const tsc = path.join(ROOT, "node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [tsc, "--noEmit", "--project", folder]);
});

test("views, explain and dump show the new dimension and metric", async () => {
  const exported = await run("export");
  expect(exported.status, exported.stderr).toBe(0);
  const { stdout } = await run("dump", "--format", "csv", "--view", "usage_by_region");
  const [names = "", ...rows] = stdout.trim().split("\n");
  expect(names).toMatch(/^"project_id","project","usage_date","region",.*"words"/);
  expect(rows.map((row) => row.split(",")[3])).toEqual(expect.arrayContaining(['"eu"', '"us"']));
  const filtered = await run("dump", "--format", "csv", "--view", "usage_filtered");
  expect(filtered.stdout).toContain("european");
  const day = addDays(dayOf(new Date()), -1);
  const explained = await run("explain", "--day", day, "--grouping", "region", "--metric", "words");
  expect(explained.stdout).toContain("Words in");
});

test("the page, the read API, its description and the CSV have the new dimension and metric", async () => {
  await using worker = startChanged(["start"]);
  const { url: monitor } = JSON.parse(await worker.waitFor("monitor listens"));
  const yesterday = addDays(dayOf(new Date()), -1);
  const question = `metric=words&grouping=region&from=${yesterday}&to=${yesterday}`;
  const read = async (address: string) => (await fetch(`${monitor}${address}`)).text();

  const answer = JSON.parse(await read(`/api/v1/usage?${question}`));
  expect(answer.groups.map(({ group }: { group: string }) => group).sort()).toEqual(["eu", "us"]);
  expect(Number(answer.total.amount)).toBeGreaterThan(0);
  expect(await read(`/api/v1/usage.csv?${question}`)).toMatch(/\beu\b/);
  expect(await read("/api/v1/openapi.json")).toMatch(/"region".*"words"|"words".*"region"/s);
  const page = await read(`/usage?${question}`);
  expect(page).toContain("Words");
  expect(page).toContain("region");
});
