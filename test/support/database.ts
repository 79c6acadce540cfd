// A private copy of the migrated database for one test file, dropped after the file.

import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { type RawBuilder, sql } from "kysely";
import { afterAll, inject } from "vitest";
import { openPostgres } from "../../src/db/connection/database.ts";
import { leftBehind } from "./pooler.ts";
import { databaseUrl, runStatement } from "./postgres-admin.ts";

const COPY_ATTEMPTS_MAX = 100;
const COPY_RETRY_MS = 200;

export type DatabaseUrls = {
  /** For the product: through the pooler, if the run has one. */
  readonly url: string;
  /** For administration, and for settings of a session. */
  readonly directUrl: string;
};

/** Called at the top of a test file. */
export async function testDatabase() {
  const copy = await copyDatabase();
  const { url, directUrl } = copy;
  await logStatements(directUrl, false);
  const db = openPostgres(url);
  afterAll(async () => {
    await using _ = copy;
    await db.destroy();
  });
  const read = async <T>(query: RawBuilder<T>): Promise<readonly T[]> => (await query.execute(db)).rows;
  /** The sessions that wait for a lock. */
  const waitingForLock = () =>
    read(sql`select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
  return { db, url, directUrl, read, waitingForLock };
}

/** Sets whether the server logs the statements of new connections. Logging often doubles their time. With a pooler, logging stays on. */
export async function logStatements(url: string, isLogged: boolean): Promise<void> {
  const { url: serverUrl, logFile, pooledUrl } = inject("postgres");
  if (logFile === undefined || pooledUrl !== undefined) return;
  const name = new URL(url).pathname.slice(1);
  await runStatement(serverUrl, `alter database ${name} set log_statement = '${isLogged ? "all" : "none"}'`);
}

/** Copies the migrated database, or `source`. No session may be connected to it. The copy is dropped when it is disposed of. */
export async function copyDatabase(source?: DatabaseUrls): Promise<AsyncDisposable & DatabaseUrls> {
  const { url, template } = inject("postgres");
  const name = `${template}_${randomBytes(6).toString("hex")}`;
  await createCopy(url, source ? new URL(source.directUrl).pathname.slice(1) : template, name);
  return { ...urlsOf(name), [Symbol.asyncDispose]: () => dropDatabase(name) };
}

/** Throws if a session setting was left behind in a connection of the pooler, which other clients get next. */
export async function dropDatabase(name: string): Promise<void> {
  const { url, pooledUrl } = inject("postgres");
  const left = pooledUrl === undefined ? [] : await leftBehind(databaseUrl(pooledUrl, name));
  await runStatement(url, `drop database ${name} with (force)`);
  if (left.length > 0) throw new Error(`left behind in connections of the pooler: ${left.join(", ")}`);
}

export function urlsOf(name: string): DatabaseUrls {
  const { url, pooledUrl = url } = inject("postgres");
  return { url: databaseUrl(pooledUrl, name), directUrl: databaseUrl(url, name) };
}

/** Copying files is faster than writing them to the WAL. Copying fails while autovacuum is connected to the template for a moment. */
async function createCopy(url: string, template: string, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await runStatement(url, `create database ${name} template ${template} strategy file_copy`);
      return;
    } catch (error) {
      if (attempt === COPY_ATTEMPTS_MAX || !isInUse(error)) throw error;
      await setTimeout(COPY_RETRY_MS);
    }
  }
}

/** SQLSTATE 55006: another session is connected to the template. */
function isInUse(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "55006";
}
