// Reads a view of schema bi from its first row to its last, as it was at one moment, a few rows at a time.

import { sql } from "kysely";
import type { Row, View } from "../dump/view.ts";
import type { Database } from "./database.ts";
import { type DayRange, dumpQuery } from "./dump-query.ts";
import { readSnapshot } from "./read-snapshot.ts";
import type { Tx } from "./transaction.ts";

const BATCH_ROWS = 1_000;
const STATEMENT_SECONDS_MAX = 10 * 60;

/**
 * Not tried again, as half of it may have been written by then. The database keeps for it what is changed and removed
 * meanwhile, so whoever takes the rows may rest for ten minutes at most. An aborted signal ends the statement that runs.
 */
export async function inDump<T>(db: Database, signal: AbortSignal, work: (tx: Tx) => Promise<T>): Promise<T> {
  const dump = async (tx: Tx) => {
    // A cursor is planned for its first rows, and here all of them are wanted.
    const { rows } = await sql<{ pid: number }>`
      select pg_catalog.pg_backend_pid() as pid, pg_catalog.set_config('cursor_tuple_fraction', '1', true),
        pg_catalog.set_config('idle_in_transaction_session_timeout', '10min', true)
    `.execute(tx);
    let cancelled: Promise<unknown> | undefined;
    const cancel = () => {
      cancelled = sql`select pg_catalog.pg_cancel_backend(${rows[0]?.pid})`.execute(db).catch(() => {});
    };
    signal.addEventListener("abort", cancel, { once: true });
    try {
      signal.throwIfAborted();
      return await work(tx);
    } finally {
      signal.removeEventListener("abort", cancel);
      // Before the transaction ends: a pooler gives its connection to somebody else then, whose statement it would hit.
      await cancelled;
    }
  };
  return readSnapshot(db, dump, STATEMENT_SECONDS_MAX);
}

export async function* readRows(tx: Tx, view: View, range: DayRange): AsyncGenerator<readonly Row[]> {
  await sql`declare dumped no scroll cursor for ${dumpQuery(view, range)}`.execute(tx);
  for (;;) {
    const { rows } = await sql<
      Readonly<Record<string, string | null>>
    >`fetch ${sql.lit(BATCH_ROWS)} from dumped`.execute(tx);
    if (rows.length > 0) yield rows.map((row): Row => view.columns.map(({ name }) => row[name] ?? null));
    if (rows.length < BATCH_ROWS) return;
  }
}
