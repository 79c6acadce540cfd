// Stores what the configuration says of series, prices and budgets, each only when it has changed.

import { hash } from "node:crypto";
import { sql } from "kysely";
import type { Database } from "./database.ts";
import { inTransaction, type Tx } from "./transaction.ts";

/** Calls `write` unless the same text was stored last. Nearly always it was, and then no process waits for another. Returns whether it was called. */
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
