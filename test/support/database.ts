// A private copy of the migrated database for one test file, gone again after the file.

import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { afterAll, inject } from "vitest";
import { type Database, openPostgres } from "../../src/db/database.ts";
import { databaseUrl, runStatement } from "./postgres-admin.ts";

const COPIES_MAX = 5;
const WAIT_MS = 200;

/** Called at the top of a test file. */
export async function testDatabase(): Promise<{ readonly db: Database; readonly url: string }> {
  const server = inject("postgres");
  const name = `${server.template}_${randomBytes(6).toString("hex")}`;
  await copyDatabase(server.url, server.template, name);
  const url = databaseUrl(server.url, name);
  const db = openPostgres(url);
  afterAll(async () => {
    await db.destroy();
    await runStatement(server.url, `drop database ${name} with (force)`);
  });
  return { db, url };
}

/** Copying a file takes less time than writing it to the log, and autovacuum may be in the template for a moment. */
async function copyDatabase(url: string, template: string, name: string): Promise<void> {
  for (let copy = 1; ; copy++) {
    try {
      await runStatement(url, `create database ${name} template ${template} strategy file_copy`);
      return;
    } catch (error) {
      if (copy === COPIES_MAX || !isInUse(error)) throw error;
      await setTimeout(WAIT_MS);
    }
  }
}

/** SQLSTATE 55006: another session is connected to the template. */
function isInUse(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "55006";
}
