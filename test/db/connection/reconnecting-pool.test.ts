// How the pool waits for a database that becomes unreachable. The test cuts the connections at a proxy in front of the database.

import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { type TcpProxy, tcpProxy } from "../../cli/tcp-proxy.ts";
import { testDatabase } from "../../support/database.ts";

const { url } = await testDatabase();

test("the pool waits for a database that was reached before", async () => {
  const { db, proxy } = await open({ ms: 60_000 });
  await one(db);
  proxy.cut();
  const answer = one(db).catch(() => one(db));
  setTimeout(proxy.restore, 700);
  expect(await answer).toBe(1);
});

test("the wait ends after waitMs", async () => {
  const { db, proxy } = await open({ ms: 600 });
  await one(db);
  proxy.cut();
  const startedMs = performance.now();
  await expect(one(db).catch(() => one(db))).rejects.toThrow(/terminated|ECONNRESET|hang up/);
  expect(performance.now() - startedMs).toBeGreaterThan(600);
});

test("the wait for a minute ends with the signal, and a database that was never reached is not waited for", async () => {
  const stop = new AbortController();
  const startedMs = performance.now();
  const never = await open({ ms: 60_000 });
  never.proxy.cut();
  await expect(one(never.db)).rejects.toThrow();
  const { db, proxy } = await open({ ms: 60_000, signal: stop.signal });
  await one(db);
  proxy.cut();
  setTimeout(() => stop.abort(), 700);
  await expect(one(db).catch(() => one(db))).rejects.toThrow();
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

async function open({ ms, signal = new AbortController().signal }: { ms: number; signal?: AbortSignal }): Promise<{
  readonly db: Database;
  readonly proxy: TcpProxy;
}> {
  const proxy = await tcpProxy(url);
  const db = openPostgres(proxy.url, undefined, { waitMs: ms, signal, stoppingMs: 1_000 });
  onTestFinished(async () => {
    await db.destroy();
    await proxy[Symbol.asyncDispose]();
  });
  return { db, proxy };
}

/** Runs a statement. The first one after a cut may use a connection that has not noticed the cut. */
const one = async (db: Database) => (await sql<{ one: number }>`select 1 as one`.execute(db)).rows[0]?.one;
