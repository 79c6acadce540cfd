// Transactions: one that is retried when the server ends it for a reason of its own, and a read-only snapshot.

import { setTimeout as sleep } from "node:timers/promises";
import { sql, type Transaction } from "kysely";
import type { Tables } from "../schema.ts";
import type { Database } from "./database.ts";
import { isConnectionError } from "./errors.ts";
import { withStatementTimeout } from "./timeouts.ts";

export type Tx = Transaction<Tables>;

const ATTEMPTS_MAX = 4;
const DELAY_MS_FIRST = 100;

/** What a statement may take at the first attempt, and twice as long at each that follows: a silent server is given up soon, a slow one gets its time. */
const STATEMENT_SECONDS_FIRST = 25;

/** SQLSTATE of a serialisation failure, a deadlock and a lock timeout. */
const CONFLICT = new Set(["40001", "40P01", "55P03"]);
/** SQLSTATE of a statement timeout, and of a write to a server that is read-only during a failover. */
const SERVER_BUSY = new Set(["57014", "25006"]);

/**
 * Runs `work` in a transaction, whole and again where the server ended it. `work` must be safe to repeat even after a
 * COMMIT whose answer was lost. The settings hold for the transaction only: a pooler would hand a session's to others.
 */
export async function inTransaction<T>(db: Database, work: (tx: Tx) => Promise<T>): Promise<T> {
  return withRetries((attempt) => {
    const seconds = STATEMENT_SECONDS_FIRST * 2 ** (attempt - 1);
    const transaction = async (tx: Tx) => {
      await sql`
        select pg_catalog.set_config('search_path', 'pg_catalog', true),
          pg_catalog.set_config('lock_timeout', '20s', true),
          pg_catalog.set_config('statement_timeout', ${`${seconds}s`}, true),
          pg_catalog.set_config('idle_in_transaction_session_timeout', '60s', true)
      `.execute(tx);
      return await work(tx);
    };
    return withStatementTimeout(seconds * 1000, () => db.transaction().execute(transaction));
  });
}

/** Runs `work`, whole and again where the server ended it. It must be safe to repeat even where it was done and nobody heard. */
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

/** Whether it is the server's state that was in the way, and not what it was asked. */
export function isTransient(error: unknown): boolean {
  return isConnectionError(error) || isConflict(error) || SERVER_BUSY.has(codeOf(error));
}

/** Whether the server was reached but ended the statement because of another session. That is not an outage. */
export function isConflict(error: unknown): boolean {
  return CONFLICT.has(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

// Reads several things as they are at one moment.

/** For whoever asks once, and wants an answer. */
const SNAPSHOT_SECONDS_MAX = 60;
/** For a page or a scrape: whoever asks does so again soon, and there are few connections. */
export const BRIEF_SNAPSHOT_SECONDS = 5;

/** Not tried again. Gives up after so many seconds for a statement. */
export async function readSnapshot<T>(
  db: Database,
  read: (tx: Tx) => Promise<T>,
  statementSecondsMax: number = SNAPSHOT_SECONDS_MAX,
): Promise<T> {
  const transaction = db.transaction().setAccessMode("read only").setIsolationLevel("repeatable read");
  const snapshot = async (tx: Tx) => {
    await sql`
      select pg_catalog.set_config('search_path', 'pg_catalog', true),
        pg_catalog.set_config('statement_timeout', ${`${statementSecondsMax}s`}, true)
    `.execute(tx);
    return await read(tx);
  };
  return withStatementTimeout(statementSecondsMax * 1000, () => transaction.execute(snapshot));
}
