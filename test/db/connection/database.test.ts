// A pool of connections to Postgres. `url` leads through a pooler if the run has one, `directUrl` to the server itself.

import { sql } from "kysely";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";

const { url, directUrl } = await testDatabase();
const losses: string[] = [];
const db = openPostgres(url, ({ message }) => losses.push(message));
afterAll(() => db.destroy());

test("days, times and numbers are read alike under every DateStyle", async () => {
  const name = new URL(directUrl).pathname.slice(1);
  for (const style of ["German", "SQL, DMY", "Postgres, MDY", "ISO"]) {
    await runStatement(directUrl, `alter database ${name} set datestyle = ${style}`);
    await using other = openPostgres(url);
    const { rows } = await sql`
      select date '2026-03-04' as day, (date '2026-03-04')::text as text, timestamptz '2026-03-04T05:06:07+02' as moment,
        9007199254740993::bigint as large, 0.10000000000000000001 as exact, 7::integer as small, null::date as nothing
    `.execute(other);
    const numbers = { large: "9007199254740993", exact: "0.10000000000000000001", small: 7, nothing: null };
    const moment = new Date("2026-03-04T03:06:07Z");
    expect(rows).toEqual([{ day: "2026-03-04", text: "2026-03-04", moment, ...numbers }]);
  }
  await runStatement(directUrl, `alter database ${name} reset datestyle`);
});

// Behind a pooler, the connections that the server knows are the pooler's, which replaces them without telling its clients.
test.skipIf(url !== directUrl)("lost idle connections are replaced without failing a query", async () => {
  await Promise.all([1, 2, 3].map(() => sql`select pg_sleep(0.05)`.execute(db)));
  const others = "datname = current_database() and pid <> pg_backend_pid()";
  await runStatement(url, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where ${others}`);
  await expect.poll(() => losses.length).toBeGreaterThanOrEqual(3);
  expect(losses[0]).toContain("terminating connection due to administrator command");
  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }]);
});

test("losing a connection in use fails only the query that uses it", async () => {
  await db.connection().execute(async (connection) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(connection);
    const sleeping = sql`select pg_sleep(60)`.execute(connection);
    await Promise.all([
      expect(sleeping).rejects.toMatchObject({ code: "57P01" }),
      runStatement(url, `select pg_terminate_backend(${rows[0]?.pid}, 10000)`),
    ]);
  });
  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }]);
});

test("a pool opens four connections at most", async () => {
  await Promise.all(Array.from({ length: 8 }, () => sql`select pg_sleep(0.5)`.execute(db)));
  const own = "datname = current_database() and application_name = 'usage-export'";
  expect(await runStatement(url, `select 1 from pg_stat_activity where ${own}`)).toHaveLength(4);
});

test("the pool waits for a database that was reached before", async () => {
  const { db, proxy } = await open({ waitMs: 60_000 });
  await selectOne(db);
  proxy.cut();
  const answer = selectAfterCut(db);
  await expect.poll(proxy.refused).toBeGreaterThan(1);
  proxy.restore();
  expect(await answer).toBe(1);
});

test("the wait ends after waitMs", async () => {
  const { db, proxy } = await open({ waitMs: 600 });
  await selectOne(db);
  proxy.cut();
  const startedMs = performance.now();
  await expect(selectAfterCut(db)).rejects.toThrow(/terminated|ECONNRESET|hang up/);
  expect(performance.now() - startedMs).toBeGreaterThan(600);
});

test("a database that was never reached is not waited for", async () => {
  const startedMs = performance.now();
  const { db, proxy } = await open({ waitMs: 60_000 });
  proxy.cut();
  await expect(selectOne(db)).rejects.toThrow();
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

test("the wait ends when the signal aborts", async () => {
  const stop = new AbortController();
  const startedMs = performance.now();
  const { db, proxy } = await open({ waitMs: 60_000, signal: stop.signal });
  await selectOne(db);
  proxy.cut();
  const refused = expect(selectAfterCut(db)).rejects.toThrow();
  await expect.poll(proxy.refused).toBeGreaterThan(1);
  stop.abort();
  await refused;
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

/** Opens a pool behind a proxy that can cut its connections. After the signal, statements may run on for a second. */
async function open({ waitMs, signal = new AbortController().signal }: { waitMs: number; signal?: AbortSignal }) {
  const proxy = await startPostgresFront(url);
  const db = openPostgres(proxy.url, undefined, { waitMs, signal, stoppingMs: 1_000 });
  onTestFinished(async () => {
    await db.destroy();
    await proxy[Symbol.asyncDispose]();
  });
  return { db, proxy };
}

/** The first statement after a cut may use a connection that has not noticed the cut. */
const selectAfterCut = (db: Database) => selectOne(db).catch(() => selectOne(db));
const selectOne = async (db: Database) => (await sql<{ one: number }>`select 1 as one`.execute(db)).rows[0]?.one;
