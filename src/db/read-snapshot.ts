// Reads several things as they are at one moment, briefly: whoever asks does so again soon.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { allowStatements } from "./statement-limit.ts";
import type { Tx } from "./transaction.ts";

/** Not tried again. Gives up after so many seconds for a statement. */
export async function readSnapshot<T>(db: Database, read: (tx: Tx) => Promise<T>, statementSecondsMax = 5): Promise<T> {
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
