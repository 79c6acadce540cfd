// A database that says nothing any more, behind a front that swallows what it gets.

import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { isConnectionError } from "../../../src/db/connection/errors.ts";
import {
  poolWithTimeouts,
  statementTimeoutMs,
  type TimeoutOptions,
  withStatementTimeout,
} from "../../../src/db/connection/timeouts.ts";
import { inTransaction, withRetries } from "../../../src/db/connection/transaction.ts";
import type { Tables } from "../../../src/db/schema.ts";
import { type FaultEvent, type Gate, PASS } from "../../faults/gate.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";

const { url, directUrl } = await testDatabase();
await runStatement(directUrl, "create table public.note (text text)");

/** Through a front with a fault, and with a limit that a test can wait for. */
async function open(gate: Gate, limits: Partial<TimeoutOptions> = {}): Promise<Database> {
  const front = await startPostgresFront(url, { who: "test", gate });
  const pool = new pg.Pool({ connectionString: front.url, max: 1 });
  pool.on("connect", (client) => client.on("error", () => {}));
  const limited = poolWithTimeouts(pool, { statementMs: () => 300, stoppingMs: 300, ...limits });
  const db: Database = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: limited }) });
  onTestFinished(async () => {
    await db.destroy();
    await front[Symbol.asyncDispose]();
  });
  return db;
}

/** Swallows the first event of the words, and the connection of it from then on. */
function holeAt(words: string, side: FaultEvent["side"]): Gate {
  let done = false;
  return (event) => {
    if (done || event.side !== side || !event.name.includes(words)) return PASS;
    done = true;
    return { kind: "hole" };
  };
}

const note = (text: string) => sql`insert into public.note values (${text})`;

async function noted(text: string): Promise<number> {
  return (await runStatement(directUrl, `select from public.note where text = '${text}'`)).length;
}

test("a statement without an answer is a database that is away", async () => {
  const db = await open(holeAt("select 1", "back"));

  const error = await sql`select 1`.execute(db).catch((cause: unknown) => cause);

  expect(isConnectionError(error)).toBe(true);
  expect(error).toMatchObject({ message: "the database has not answered within 0 s" });
});

test("its connection is not used again: the answer that comes late would be taken for another's", async () => {
  const db = await open(({ name, side }) =>
    side === "back" && name.includes("'late'") ? { kind: "delay", ms: 600 } : PASS,
  );
  await expect(sql`select 'late' as answer`.execute(db)).rejects.toThrow("has not answered");

  const { rows } = await sql`select 'other' as answer, pg_catalog.pg_sleep(0.1)`.execute(db);

  expect(rows).toMatchObject([{ answer: "other" }]);
});

test("where all connections are in use while the program stops, the others are used on", async () => {
  const front = await startPostgresFront(url, { who: "test", gate: () => PASS });
  const pool = new pg.Pool({ connectionString: front.url, max: 1, connectionTimeoutMillis: 2_000 });
  const stop = AbortSignal.abort();
  const limited = poolWithTimeouts(pool, { statementMs: () => 20_000, stoppingMs: 20_000, stop });
  const db: Database = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: limited }) });
  onTestFinished(async () => {
    await db.destroy();
    await front[Symbol.asyncDispose]();
  });

  const slow = sql`select pg_catalog.pg_sleep(5)`.execute(db);
  await expect(sql`select 1`.execute(db)).rejects.toThrow("timeout exceeded");
  await slow;

  await expect(sql`select 1`.execute(db)).resolves.toBeDefined();
});

test("nothing more is asked on it, not even to roll back", async () => {
  let asked = 0;
  const statementMs = () => {
    asked++;
    return 300;
  };
  const db = await open(holeAt("insert into public.note", "out"), { statementMs });

  const transaction = db.transaction().execute((tx) => note("never").execute(tx));

  await expect(transaction).rejects.toThrow("has not answered");
  // BEGIN and the statement itself.
  expect(asked).toBe(2);
});

test("nothing of a transaction whose statement got no answer is stored twice or half", async () => {
  const db = await open(holeAt("insert into public.note", "back"));

  await inTransaction(db, async (tx) => {
    await note("statement").execute(tx);
  });

  expect(await noted("statement")).toBe(1);
});

test.for(["out", "back"] as const)(
  "a COMMIT without an answer may have happened or not: the work is done again (%s)",
  async (side) => {
    const db = await open(holeAt("commit", side));
    let attempts = 0;

    await inTransaction(db, async (tx) => {
      attempts++;
      const { rows } = await sql`select from public.note where text = ${`commit ${side}`}`.execute(tx);
      if (rows.length === 0) await note(`commit ${side}`).execute(tx);
    });

    expect(attempts).toBe(2);
    expect(await noted(`commit ${side}`)).toBe(1);
  },
);

test("a single statement that is safe to repeat is repeated", async () => {
  const db = await open(holeAt("select 2", "out"));

  const { rows } = await withRetries(() => sql`select 2 as two`.execute(db));

  expect(rows).toEqual([{ two: 2 }]);
});

test("a stopping program waits only a little longer", async () => {
  const stop = new AbortController();
  const db = await open(holeAt("select 1", "back"), { statementMs: () => 60_000, stop: stop.signal });
  const asked = sql`select 1`.execute(db);
  setTimeout(() => stop.abort(), 100);

  await expect(asked).rejects.toThrow("has not answered");
});

test("a stopping program sends nothing more to a database that does not answer", async () => {
  const db = await open(holeAt("select 1", "back"), { stop: AbortSignal.abort() });
  await expect(sql`select 1`.execute(db)).rejects.toThrow("has not answered");
  const startedMs = performance.now();

  await expect(sql`select 2`.execute(db)).rejects.toThrow("has not answered");

  expect(performance.now() - startedMs).toBeLessThan(100);
});

test("a stopping program can still use a database that answers", async () => {
  const db = await open(() => PASS, { stop: AbortSignal.abort() });

  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }]);
});

test("work that may take the server longer is waited for longer, and never shorter", async () => {
  expect(statementTimeoutMs()).toBe(30_000);
  expect(await withStatementTimeout(60_000, async () => statementTimeoutMs())).toBe(65_000);
  expect(await withStatementTimeout(5_000, async () => statementTimeoutMs())).toBe(30_000);
  expect(await withStatementTimeout(60_000, () => withStatementTimeout(40_000, async () => statementTimeoutMs()))).toBe(
    65_000,
  );
});

test("a transaction that is tried again gives the server twice the time", async () => {
  const db = await open(() => PASS, { statementMs: () => 10_000 });
  const allowed: unknown[] = [];

  await inTransaction(db, async (tx) => {
    const { rows } = await sql<{ limit: string }>`
      select pg_catalog.current_setting('statement_timeout') as limit
    `.execute(tx);
    allowed.push([rows[0]?.limit, statementTimeoutMs()]);
    if (allowed.length < 3) throw Object.assign(new Error("made up"), { code: "57014" });
  });

  expect(allowed).toEqual([
    ["25s", 30_000],
    ["50s", 55_000],
    ["100s", 105_000],
  ]);
});
