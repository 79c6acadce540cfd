// Reads several things as they are at one moment, briefly: whoever asks does so again soon.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import type { Tx } from "./transaction.ts";

/** Not tried again. Gives up after five seconds for a statement. */
export async function readSnapshot<T>(db: Database, read: (tx: Tx) => Promise<T>): Promise<T> {
  const transaction = db.transaction().setAccessMode("read only").setIsolationLevel("repeatable read");
  return transaction.execute(async (tx) => {
    await sql`
      select pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('statement_timeout', '5s', true)
    `.execute(tx);
    return await read(tx);
  });
}
