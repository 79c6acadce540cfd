// Lets pg-boss speak through our own pool, so that a process has one, and through a transaction of ours.

import { CompiledQuery } from "kysely";
import type { Db } from "pg-boss";
import type { Database } from "./database.ts";
import type { Tx } from "./transaction.ts";

/**
 * pg-boss sends some work as several statements from BEGIN to COMMIT in one text. Where one of them fails the connection
 * is left inside an aborted transaction, and would go back to the pool like that.
 */
export function onPool(db: Database): Db {
  return {
    executeSql: (text, values) =>
      db.connection().execute(async (connection) => {
        try {
          return await run(connection, text, values);
        } catch (error) {
          await connection.executeQuery(CompiledQuery.raw("rollback")).catch(() => {});
          throw error;
        }
      }),
  };
}

/** What is done by it is done with the transaction or not at all. */
export function inside(tx: Tx): Db {
  return { executeSql: (text, values) => run(tx, text, values) };
}

async function run(on: Database, text: string, values: readonly unknown[] = []): Promise<{ rows: unknown[] }> {
  const { rows } = await on.executeQuery(CompiledQuery.raw(text, [...values]));
  return { rows };
}
