// Transactions: one that is repeated after a transient error, a read-only snapshot, and one that stores what is configured.

import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type QueryResult, type RawBuilder, sql, type Transaction } from "kysely";
import type { Tables } from "../schema.ts";
import type { Database } from "./database.ts";
import { isTransient } from "./errors.ts";
import { type Settings, withStatementTimeout } from "./timeouts.ts";

export type Tx = Transaction<Tables>;

const ATTEMPTS_MAX = 4;
const DELAY_MS_FIRST = 100;

/**
 * The statement timeout of the first attempt. It doubles with each further one, so that a server that does not answer is noticed
 * soon and a slow one still has enough time in the end.
 */
const STATEMENT_SECONDS_FIRST = 25;

/**
 * Runs `work` in a transaction. After a transient error the whole transaction is repeated, so `work` must be safe to repeat, as in
 * `withRetries`.
 */
export async function inTransaction<T>(db: Database, work: (tx: Tx) => Promise<T>): Promise<T> {
  return withRetries((attempt) => {
    const seconds = STATEMENT_SECONDS_FIRST * 2 ** (attempt - 1);
    return withStatementTimeout(seconds * 1000, () => db.transaction().execute(work), {
      search_path: "pg_catalog",
      lock_timeout: "20s",
      statement_timeout: `${seconds}s`,
      idle_in_transaction_session_timeout: "60s",
    });
  });
}

/** Runs a single statement in a transaction of its own. */
export async function execute<T>(db: Database, statement: RawBuilder<T>): Promise<QueryResult<T>> {
  return inTransaction(db, (tx) => statement.execute(tx));
}

/** Repeats `work` after a transient error. It must be safe to repeat even if it was committed but the acknowledgement was lost. */
export async function withRetries<T>(work: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || !isTransient(error)) throw error;
      await sleep(DELAY_MS_FIRST * 2 ** attempt * (0.5 + Math.random() / 2));
    }
  }
}

/**
 * Makes this transaction's commit durable. A role or a database may have turned `synchronous_commit` off for speed: a server that
 * crashes then loses commits it has confirmed. A stricter setting is kept.
 */
export async function commitDurably(tx: Tx): Promise<void> {
  await sql`
    select pg_catalog.set_config('synchronous_commit', 'on', true)
    where pg_catalog.current_setting('synchronous_commit') <> 'remote_apply'
  `.execute(tx);
}

/** For a command, whose caller asks once and wants an answer. */
const SNAPSHOT_SECONDS_MAX = 60;
/** For a page or a scrape: its caller asks again soon, and there are few connections. */
export const BRIEF_SNAPSHOT_SECONDS = 5;

const READING = {
  // JIT compilation takes seconds where the planner overestimates the rows of a statement, and never saves as much.
  jit: "off",
  // With the default of 4 MB the rows of a month are sorted on disk before they are added up.
  work_mem: "32MB",
  // With the default of 4 the planner would read the whole table to find some days of each series, as it does not know that the rows of a day
  // are stored together.
  random_page_cost: "1.1",
};

/** Everything that `read` reads is as of one moment. It is not repeated after an error. `statementSecondsMax` limits each statement. */
export async function readSnapshot<T>(
  db: Database,
  read: (tx: Tx) => Promise<T>,
  statementSecondsMax: number = SNAPSHOT_SECONDS_MAX,
): Promise<T> {
  const transaction = db.transaction().setAccessMode("read only").setIsolationLevel("repeatable read");
  return withStatementTimeout(statementSecondsMax * 1000, () => transaction.execute(read), {
    search_path: "pg_catalog",
    statement_timeout: `${statementSecondsMax}s`,
    ...READING,
  });
}

/** Runs a statement, which has no parameters, and returns its rows. */
export type Query = <Row>(statement: string) => Promise<readonly Row[]>;

type ReadOptions = {
  /** The time limit of each statement. */
  readonly secondsMax?: number;
  /** Once it is aborted, no further statement is sent. */
  readonly signal?: AbortSignal | undefined;
};

/** Reads by the text of statements, as facts do, all of them as of one moment. */
export async function readByStatements<T>(
  db: Database,
  read: (query: Query) => Promise<T>,
  { secondsMax = BRIEF_SNAPSHOT_SECONDS, signal }: ReadOptions = {},
): Promise<T> {
  return readSnapshot(db, (tx) => read(onceEach(queryOn(tx, signal))), secondsMax);
}

/** Within a snapshot the same statement has the same rows: the parts of a page ask for some facts several times. */
function onceEach(query: Query): Query {
  const known = new Map<string, Promise<readonly unknown[]>>();
  return <Row>(statement: string) => {
    const rows = known.get(statement) ?? query<Row>(statement);
    known.set(statement, rows);
    return rows as Promise<readonly Row[]>;
  };
}

export function queryOn(db: Database, signal?: AbortSignal): Query {
  return async <Row>(statement: string) => {
    signal?.throwIfAborted();
    return (await sql.raw<Row>(statement).execute(db)).rows;
  };
}

/** Changes settings within a transaction. */
export async function setUntilCommit(tx: Tx, settings: Settings): Promise<void> {
  const calls = Object.entries(settings).map(([name, value]) => sql`pg_catalog.set_config(${name}, ${value}, true)`);
  await sql`select ${sql.join(calls)}`.execute(tx);
}

/** Returns the error if `work` fails; then the transaction goes on as if `work` had not been called. */
export async function tryWithin<T>(
  tx: Tx,
  work: () => Promise<T>,
): Promise<{ readonly value: T } | { readonly error: unknown }> {
  await sql`savepoint tried`.execute(tx);
  try {
    const value = await work();
    await sql`release savepoint tried`.execute(tx);
    return { value };
  } catch (error) {
    // Without a connection this fails as well, and the whole transaction with it.
    await sql`rollback to savepoint tried`.execute(tx);
    return { error };
  }
}

/**
 * Stores what the configuration says of series, prices or budgets: calls `write` unless the same text was stored last. Nearly always it was,
 * and then no process waits for another. Returns whether it was called.
 */
export async function storeConfigured(
  db: Database,
  what: "series" | "prices" | "budgets",
  text: string,
  write: (tx: Tx) => Promise<void>,
): Promise<boolean> {
  const digest = hash("sha256", text);
  const isStored = async (on: Database) =>
    (await sql`select from usage_export.configured where what = ${what} and digest = ${digest}`.execute(on)).rows
      .length > 0;
  if (await isStored(db)) return false;
  return inTransaction(db, async (tx) => {
    // Two processes that start at once would both write.
    await sql`lock table usage_export.configured in share row exclusive mode`.execute(tx);
    if (await isStored(tx)) return false;
    await write(tx);
    await sql`
      insert into usage_export.configured (what, digest) values (${what}, ${digest})
      on conflict (what) do update set digest = excluded.digest
    `.execute(tx);
    return true;
  });
}
