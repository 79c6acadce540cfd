// If the database no longer answers, a statement fails in time. A proxy before Postgres (the front) drops messages.

import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { isConnectionError } from "../../../src/db/connection/errors.ts";
import { poolWithTimeouts, statementTimeoutMs, withStatementTimeout } from "../../../src/db/connection/timeouts.ts";
import { inTransaction, withRetries } from "../../../src/db/connection/transaction.ts";
import type { Tables } from "../../../src/db/schema.ts";
import { type DecideFault, type FaultEvent, PASS } from "../../faults/fault-decision.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { testDatabase } from "../../support/database.ts";
import { WAIT_MS_MAX } from "../../support/limits.ts";
import { runStatement } from "../../support/postgres-admin.ts";

const { url, directUrl } = await testDatabase();
await runStatement(directUrl, "create table public.note (text text)");

/** Opens the database through a front that injects faults. */
async function open(decideFault: DecideFault, limitMs = () => WAIT_MS_MAX, giveUp?: AbortSignal): Promise<Database> {
  const front = await startPostgresFront(url, { decideFault });
  const pool = new pg.Pool({ connectionString: front.url, max: 1 });
  pool.on("connect", (client) => client.on("error", () => {}));
  const limited = poolWithTimeouts(pool, limitMs, giveUp);
  const db: Database = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: limited }) });
  onTestFinished(async () => {
    await db.destroy();
    await front[Symbol.asyncDispose]();
  });
  return db;
}

/** The statement with this number, which gets no answer, has a limit of 0.3 s. The others have a long one for busy machines. */
function shortLimitOfStatement(number: number): () => number {
  let begun = 0;
  return () => (++begun === number ? 300 : WAIT_MS_MAX);
}

/** Drops the first statement with `text` ("out") or its answer ("back"), and all that follows. The connection stays open. */
function dropAt(text: string, side: FaultEvent["side"]): DecideFault {
  let isDropped = false;
  return (event) => {
    if (isDropped || event.side !== side || !event.name.includes(text)) return PASS;
    isDropped = true;
    return { kind: "silence" };
  };
}

const insertNote = (text: string) => sql`insert into public.note values (${text})`;

async function countNotes(text: string): Promise<number> {
  return (await runStatement(directUrl, `select from public.note where text = '${text}'`)).length;
}

test("a statement without an answer counts as a lost connection", async () => {
  const db = await open(dropAt("select 1", "back"), shortLimitOfStatement(1));

  const error = await sql`select 1`.execute(db).catch((cause: unknown) => cause);

  expect(isConnectionError(error)).toBe(true);
  expect(error).toMatchObject({ message: "the database has not answered in time" });
});

test("a late answer is not taken for the answer to the next statement", async () => {
  const db = await open(
    ({ name, side }) => (side === "back" && name.includes("'late'") ? { kind: "delay", ms: 600 } : PASS),
    shortLimitOfStatement(1),
  );
  await expect(sql`select 'late' as answer`.execute(db)).rejects.toThrow("has not answered");

  const { rows } = await sql`select 'other' as answer, pg_catalog.pg_sleep(0.1)`.execute(db);

  expect(rows).toMatchObject([{ answer: "other" }]);
});

test("after a timeout nothing more is sent on the connection, not even a rollback", async () => {
  let limitsAsked = 0;
  const limitMs = shortLimitOfStatement(2);
  const db = await open(dropAt("insert into public.note", "out"), () => {
    limitsAsked++;
    return limitMs();
  });

  const transaction = db.transaction().execute((tx) => insertNote("never").execute(tx));

  await expect(transaction).rejects.toThrow("has not answered");
  // Each statement asks for its limit: BEGIN, and the insert.
  expect(limitsAsked).toBe(2);
});

test.for([
  ["a statement", "insert into public.note", "back", 3],
  ["a COMMIT that did not arrive", "commit", "out", 4],
  ["a COMMIT that was executed", "commit", "back", 4],
] as const)("a transaction in which %s got no answer is stored once", async ([what, text, side, statementNumber]) => {
  const db = await open(dropAt(text, side), shortLimitOfStatement(statementNumber));
  let attempts = 0;

  await inTransaction(db, async (tx) => {
    attempts++;
    const { rows } = await sql`select from public.note where text = ${what}`.execute(tx);
    if (rows.length === 0) await insertNote(what).execute(tx);
  });

  expect(attempts).toBe(2);
  expect(await countNotes(what)).toBe(1);
});

test("the limits of a transaction are sent with its BEGIN", async () => {
  const sent: string[] = [];
  const db = await open(({ name, side }) => {
    if (side === "out") sent.push(name);
    return PASS;
  });

  await inTransaction(db, (tx) => insertNote("limits").execute(tx));

  expect(sent).toEqual([
    expect.stringMatching(/^begin; select pg_catalog\.set_config/),
    expect.stringContaining("insert"),
    "commit",
  ]);
});

test("a single statement that is safe to repeat is repeated", async () => {
  const db = await open(dropAt("select 2", "out"), shortLimitOfStatement(1));

  const { rows } = await withRetries(() => sql`select 2 as two`.execute(db));

  expect(rows).toEqual([{ two: 2 }]);
});

test("after a program has given up the database, each statement fails at once", async () => {
  const giveUp = new AbortController();
  const drop = dropAt("select 1", "back");
  const dropAndGiveUp: DecideFault = (event) => {
    const fault = drop(event);
    if (fault !== PASS) giveUp.abort();
    return fault;
  };
  const db = await open(dropAndGiveUp, () => 600_000, giveUp.signal);
  await expect(sql`select 1`.execute(db)).rejects.toThrow("has not answered");
  await expect(sql`select 2`.execute(db)).rejects.toThrow("has not answered");
});

test("withStatementTimeout never shortens the time limit", async () => {
  expect(statementTimeoutMs()).toBe(30_000);
  expect(await withStatementTimeout(60_000, async () => statementTimeoutMs())).toBe(65_000);
  expect(await withStatementTimeout(5_000, async () => statementTimeoutMs())).toBe(30_000);
  expect(await withStatementTimeout(60_000, () => withStatementTimeout(40_000, async () => statementTimeoutMs()))).toBe(
    65_000,
  );
});

test("each repetition of a transaction gives the server twice the time", async () => {
  const db = await open(
    () => PASS,
    () => 10_000,
  );
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
