// Runs statements that are complete texts, as the read API makes them, in one read-only snapshot.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot, setUntilCommit } from "./transaction.ts";

/** Runs a statement, which has no parameters, and returns its rows. */
export type Run = <Row>(statement: string) => Promise<readonly Row[]>;

type ReadOptions = {
  /** Of each statement. */
  readonly secondsMax?: number;
  /** Once it is aborted, no further statement is sent. */
  readonly signal?: AbortSignal | undefined;
};

export async function readByStatements<T>(
  db: Database,
  read: (run: Run) => Promise<T>,
  { secondsMax = BRIEF_SNAPSHOT_SECONDS, signal }: ReadOptions = {},
): Promise<T> {
  return readSnapshot(
    db,
    async (tx) => {
      // With the default of 4 the planner reads the whole table for some days of each series, as it does not know that the rows of a
      // day are stored together.
      await setUntilCommit(tx, { random_page_cost: "1.1" });
      return read(runOn(tx, signal));
    },
    secondsMax,
  );
}

export function runOn(db: Database, signal?: AbortSignal): Run {
  return async <Row>(statement: string) => {
    signal?.throwIfAborted();
    return (await sql.raw<Row>(statement).execute(db)).rows;
  };
}
