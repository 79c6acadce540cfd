// Before the tests: builds the program, starts Postgres and migrates a database that test files copy. After them: removes all three.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { mkdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { openPostgres } from "../../src/db/connection/database.ts";
import { migrateToLatest } from "../../src/db/connection/migrate.ts";
import { startPooler } from "./pooler.ts";
import { databaseUrl, runStatement } from "./postgres-admin.ts";
import { type PostgresServer, startServer } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgres: {
      readonly url: string;
      /** The name of the migrated database. The name of every database of this run begins with it. */
      readonly template: string;
      readonly logFile: string | undefined;
      /** The same server through a pooler, if the run has one. */
      readonly pooledUrl: string | undefined;
    };
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const startedMs = performance.now();
  await using opened = new AsyncDisposableStack();
  const building = startBuild(opened);
  const server = await startServer(process.env, say);
  opened.defer(server.stop);
  const template = `usage_export_test_${randomBytes(4).toString("hex")}`;
  opened.defer(() => dropDatabases(server, template));
  const pooler = await startPooler(process.env, server.url);
  opened.defer(async () => pooler?.stop());
  await createTemplate(server.url, template);
  // The processes that run the tests inherit this variable.
  process.env.TEST_PROGRAM = await building;
  const through = pooler ? " through PgBouncer" : "";
  say(`tests run on ${server.name}${through}, ready after ${Math.round(performance.now() - startedMs)} ms`);
  project.provide("postgres", { url: server.url, template, logFile: server.logFile, pooledUrl: pooler?.url });
  const all = opened.move();
  return () => all.disposeAsync();
}

/** Returns the path of the program: a given one, or one that is built while the server starts. */
function startBuild(opened: AsyncDisposableStack): Promise<string> {
  const { TEST_PROGRAM } = process.env;
  if (TEST_PROGRAM !== undefined) return Promise.resolve(TEST_PROGRAM);
  const folder = mkdtempSync(path.join(tmpdir(), "usage-export-built-"));
  opened.defer(() => rm(folder, { recursive: true }));
  const building = buildPackage(folder);
  // The folder is not removed while the build writes to it, even if something else fails first.
  const ended = Promise.allSettled([building]);
  opened.defer(async () => void (await ended));
  return building;
}

async function createTemplate(url: string, name: string): Promise<void> {
  await runStatement(url, `create database ${name}`);
  const db = openPostgres(databaseUrl(url, name));
  try {
    await migrateToLatest(db);
  } finally {
    await db.destroy();
  }
  // A database can't be copied while a session is connected to it.
  await runStatement(url, `alter database ${name} allow_connections false`);
}

/** Leaves a server that was given as it was before. `force` also drops databases to which a failed test is still connected. */
async function dropDatabases({ url }: PostgresServer, prefix: string): Promise<void> {
  const rows = await runStatement(url, `select datname from pg_database where starts_with(datname, '${prefix}')`);
  for (const { datname } of rows) await runStatement(url, `drop database ${datname} with (force)`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const ROOT = path.join(import.meta.dirname, "../..");
const BUNDLE = "dist";
/** The one package that is not bundled. */
const EMBEDDED_DATABASE = "node_modules/@electric-sql";

/**
 * Makes a package of the present sources in this empty folder, and returns the path of its program. The package is bundled, as users
 * install it: a bundle starts in a tenth of the time that the sources take. `dist` is left alone, because it may be in use.
 */
async function buildPackage(folder: string): Promise<string> {
  const { files } = JSON.parse(await readFile(path.join(ROOT, "package.json"), "utf8"));
  for (const file of ["package.json", EMBEDDED_DATABASE, ...files.filter((file: string) => file !== BUNDLE)]) {
    const link = path.join(folder, file);
    await mkdir(path.dirname(link), { recursive: true });
    await symlink(path.join(ROOT, file), link);
  }
  const bundle = path.join(folder, BUNDLE);
  await promisify(execFile)(process.execPath, [path.join(ROOT, "tools/build.ts"), bundle, "src/cli/commands.ts"]);
  return path.join(bundle, "usage-export.cjs");
}
