// Runs statements that are complete texts, as the read API makes them, in one read-only snapshot.

import { sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot, setUntilCommit } from "../connection/transaction.ts";

/** `run` returns the rows of a statement. Once `signal` is aborted, no further statement is sent. */
export async function readByStatements<T>(
  db: Database,
  read: (run: <Row>(statement: string) => Promise<readonly Row[]>) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  return readSnapshot(
    db,
    async (tx) => {
      // With the default of 4 the planner reads the whole table for some days of each series, as it does not know that the rows of a
      // day are stored together.
      await setUntilCommit(tx, { random_page_cost: "1.1" });
      return read(async <Row>(statement: string) => {
        signal?.throwIfAborted();
        return (await sql.raw<Row>(statement).execute(tx)).rows;
      });
    },
    BRIEF_SNAPSHOT_SECONDS,
  );
}
