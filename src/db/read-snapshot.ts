// Reads several things as they are at one moment.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { allowStatements } from "./statement-limit.ts";
import type { Tx } from "./transaction.ts";

/** For whoever asks once, and wants an answer. */
const STATEMENT_SECONDS_MAX = 60;
/** For a page or a scrape: whoever asks does so again soon, and there are few connections. */
export const BRIEFLY_SECONDS = 5;

/** Not tried again. Gives up after so many seconds for a statement. */
export async function readSnapshot<T>(
  db: Database,
  read: (tx: Tx) => Promise<T>,
  statementSecondsMax: number = STATEMENT_SECONDS_MAX,
): Promise<T> {
  const transaction = db.transaction().setAccessMode("read only").setIsolationLevel("repeatable read");
  const snapshot = async (tx: Tx) => {
    await sql`
      select pg_catalog.set_config('search_path', 'pg_catalog', true),
        pg_catalog.set_config('statement_timeout', ${`${statementSecondsMax}s`}, true)
    `.execute(tx);
    return await read(tx);
  };
  return allowStatements(statementSecondsMax * 1000, () => transaction.execute(snapshot));
}
