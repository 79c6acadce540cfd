// Runs transactions: repeats them after a transient error, reads at one moment, and stores configured values only if they have changed.

import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type QueryResult, type RawBuilder, sql, type Transaction } from "kysely";
import type { Tables } from "../schema.ts";
import type { Database } from "./database.ts";
import { isTransient } from "./errors.ts";
import { type Settings, settingsStatement, withStatementTimeout } from "./timeouts.ts";

export type Tx = Transaction<Tables>;

const ATTEMPTS_MAX = 4;
const DELAY_MS_MIN = 100;

/** The limit doubles with each attempt, so that a dead server is noticed soon and a slow one has enough time in the end. */
const STATEMENT_SECONDS_FIRST = 25;

const PLANNER_SETTINGS = {
  // JIT compilation takes seconds if the planner overestimates the rows of a statement, and never saves as much.
  jit: "off",
  // The planner does not know that the rows of a day are stored together. With the default of 4, a query of a few days would read the whole table.
  random_page_cost: "1.1",
};

/** The transaction may be repeated: see `withRetries`. The server ends a slow statement. If it can't be reached, this process gives up 5 s later. */
export async function inTransaction<T>(db: Database, work: (tx: Tx, attempt: number) => Promise<T>): Promise<T> {
  return withRetries((attempt) => {
    const seconds = STATEMENT_SECONDS_FIRST * 2 ** (attempt - 1);
    return withStatementTimeout(seconds * 1000, () => db.transaction().execute((tx) => work(tx, attempt)), {
      search_path: "pg_catalog",
      ...PLANNER_SETTINGS,
      lock_timeout: "20s",
      statement_timeout: `${seconds}s`,
      idle_in_transaction_session_timeout: "60s",
    });
  });
}

export async function execute<T>(db: Database, statement: RawBuilder<T>): Promise<QueryResult<T>> {
  return inTransaction(db, (tx) => statement.execute(tx));
}

/** Repeats `work` after a transient error. A repetition must be safe even if `work` was committed and only the acknowledgement was lost. */
export async function withRetries<T>(work: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || !isTransient(error)) throw error;
      await sleep(DELAY_MS_MIN * 2 ** attempt * (0.5 + Math.random() / 2));
    }
  }
}

/** Makes the commit survive a crash of the server, even if `synchronous_commit` is off. Keeps `remote_apply`, which is stronger. */
export async function commitDurably(tx: Tx): Promise<void> {
  await sql`
    select pg_catalog.set_config('synchronous_commit', 'on', true)
    where pg_catalog.current_setting('synchronous_commit') <> 'remote_apply'
  `.execute(tx);
}

/** The longest of three limits of a statement, for commands: a command reads once, so it can wait. */
const READ_SECONDS_MAX = 60;
/** The limit for a scrape and the state of jobs: the caller asks again soon, and must not hold one of the few connections for long. */
export const BRIEF_SECONDS = 5;
/** The limit for usage and cost: adding up five million rows takes 3 s of processor time, and three times as long during nightly exports. */
export const USAGE_SECONDS = 20;

const READ_SETTINGS = {
  ...PLANNER_SETTINGS,
  // With the default of 4 MB the rows of a month are sorted on disk before they are added up.
  work_mem: "32MB",
};

/** Everything that `read` reads is as of one moment. It is not repeated after an error. `secondsMax` limits each statement. */
export async function readAtOneMoment<T>(db: Database, read: (tx: Tx) => Promise<T>, secondsMax = READ_SECONDS_MAX) {
  const transaction = db.transaction().setAccessMode("read only").setIsolationLevel("repeatable read");
  const settings = { search_path: "pg_catalog", statement_timeout: `${secondsMax}s`, ...READ_SETTINGS };
  return withStatementTimeout(secondsMax * 1000, () => transaction.execute(read), settings);
}

/** Runs a statement without parameters, and returns its rows. */
export type Query = <Row>(statement: string) => Promise<readonly Row[]>;

/** Call it before a snapshot is taken. Within the snapshot, call the function that it returns, for a query that may use cached rows. */
export type RowCache = () => (tx: Tx) => Promise<Query>;

/** `secondsMax` limits each statement. Once `signal` is aborted, no statement is sent. `cache` may have rows of earlier reads. */
export type ReadOptions = {
  readonly secondsMax?: number;
  readonly signal?: AbortSignal | undefined;
  readonly cache?: RowCache | undefined;
};

/** Everything that `read` queries is as of one moment. A statement that it sends again is not run again. */
export async function queryAtOneMoment<T>(
  db: Database,
  read: (query: Query) => Promise<T>,
  { secondsMax = USAGE_SECONDS, signal, cache = oneReadCache }: ReadOptions = {},
): Promise<T> {
  const openQuery = cache();
  const readOnce = async (tx: Tx) => {
    const query = await openQuery(tx);
    return read(<Row>(statement: string) => {
      signal?.throwIfAborted();
      return query<Row>(statement);
    });
  };
  return readAtOneMoment(db, readOnce, secondsMax);
}

export const oneReadCache: RowCache = () => async (tx) => statementCache()(tx);

/** Bounds the memory. Each statement counts as STATEMENT_ROWS rows in addition to its own. */
const KNOWN_ROWS_MAX = 100_000;
const STATEMENT_ROWS = 100;

/** Each statement is run once, even if it is sent again while it runs. */
function statementCache(): (tx: Tx) => Query {
  const known = new Map<string, Promise<readonly unknown[]>>();
  let size = 0;
  const count = ({ length }: readonly unknown[]) => {
    size += length + STATEMENT_ROWS;
    if (size <= KNOWN_ROWS_MAX) return;
    known.clear();
    size = 0;
  };
  return (tx) =>
    <Row>(statement: string) => {
      const rows = known.get(statement) ?? queryOn(tx)(statement);
      if (!known.has(statement)) rows.then(count, () => known.delete(statement));
      known.set(statement, rows);
      return rows as Promise<readonly Row[]>;
    };
}

type DataState = { readonly snapshot: string; readonly circumstances: string; readonly is_changed: boolean };

/**
 * Cached rows are used until a table with the trigger record_change is written to by a transaction that the rows' snapshot does not see, or
 * until `circumstances` change: the server, the day in UTC, or how many series are due. A statement may depend on nothing else.
 */
export function openRowCache(): RowCache {
  let cached: (DataState & { readonly known: ReturnType<typeof statementCache> }) | undefined;
  return () => {
    // This is read before the caller's snapshot is taken, so the cached rows are never newer than that snapshot.
    const before = cached;
    return async (tx) => {
      const { rows } = await sql<DataState>`
        select * from usage_export.data_state(${before?.snapshot ?? null}::pg_snapshot)
      `.execute(tx);
      const [state] = rows;
      if (!state) throw new Error("expected one row with the state of the data");
      if (before && !state.is_changed && state.circumstances === before.circumstances) return before.known(tx);
      if (cached === before) cached = { ...state, known: statementCache() };
      // Concurrent reads that found the rows outdated usually have the same snapshot, and share the new rows.
      const newest = cached;
      const isSame = newest?.snapshot === state.snapshot && newest.circumstances === state.circumstances;
      return (isSame ? newest.known : statementCache())(tx);
    };
  };
}

export function queryOn(db: Database): Query {
  return async <Row>(statement: string) => (await sql.raw<Row>(statement).execute(db)).rows;
}

export async function setUntilCommit(tx: Tx, settings: Settings): Promise<void> {
  await sql.raw(settingsStatement(settings)).execute(tx);
}

/** Returns the error if `work` fails. The transaction then continues as if `work` had not been called. */
export async function tryWithin<T>(tx: Tx, work: () => Promise<T>): Promise<{ value: T } | { error: unknown }> {
  await sql`savepoint tried`.execute(tx);
  try {
    const value = await work();
    await sql`release savepoint tried`.execute(tx);
    return { value };
  } catch (error) {
    // Without a connection this also fails, and the whole transaction with it.
    await sql`rollback to savepoint tried`.execute(tx);
    return { error };
  }
}

type Configured = "series" | "prices" | "budgets";

/** Calls `write` if `text` differs from the text that was stored last, which is rare. Returns whether it was called. */
export async function storeConfigured(db: Database, what: Configured, text: string, write: (tx: Tx) => Promise<void>) {
  const digest = hash("sha256", text);
  const stored = sql`select from usage_export.configured where what = ${what} and digest = ${digest}`;
  const isStored = async (on: Database) => (await stored.execute(on)).rows.length > 0;
  if (await isStored(db)) return false;
  return inTransaction(db, async (tx) => {
    // Without the lock, two processes that start at the same time would both write.
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
