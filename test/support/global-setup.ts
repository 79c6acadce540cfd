// Before the tests: starts a Postgres server and makes a migrated database, which test files copy. After the tests: removes both.

import { randomBytes } from "node:crypto";
import type { TestProject } from "vitest/node";
import { openPostgres } from "../../src/db/connection/database.ts";
import { migrateToLatest } from "../../src/db/connection/migrate.ts";
import { type Pooler, startPooler } from "./pooler.ts";
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
  const server = await startServer(process.env, say);
  const template = `usage_export_test_${randomBytes(4).toString("hex")}`;
  let pooler: Pooler | undefined;
  const tearDown = async () => {
    try {
      await pooler?.stop();
      await dropDatabases(server, template);
    } finally {
      await server.stop();
    }
  };
  try {
    pooler = await startPooler(process.env, server.url);
    await createTemplate(server.url, template);
  } catch (error) {
    await tearDown();
    throw error;
  }
  const through = pooler ? " through PgBouncer" : "";
  say(`tests run on ${server.name}${through}, ready after ${Math.round(performance.now() - startedMs)} ms`);
  project.provide("postgres", { url: server.url, template, logFile: server.logFile, pooledUrl: pooler?.url });
  return tearDown;
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
