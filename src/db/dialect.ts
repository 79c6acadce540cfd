// Stores the dialect of each service, which a probe found: the set of parameter names that its version understands.

import { sql } from "kysely";
import type { Dialect } from "../usage/dimensions.ts";
import type { Database } from "./connection/database.ts";
import { inTransaction } from "./connection/transaction.ts";

export async function storedDialect(db: Database, serviceUrl: string): Promise<Dialect | undefined> {
  const { rows } = await sql<{ dialect: Dialect }>`
    select dialect from usage_export.service_dialect where service = ${serviceUrl}
  `.execute(db);
  return rows[0]?.dialect;
}

export async function storeDialect(db: Database, serviceUrl: string, dialect: Dialect): Promise<void> {
  await inTransaction(db, (tx) =>
    sql`
      insert into usage_export.service_dialect as known (service, dialect) values (${serviceUrl}, ${dialect})
      on conflict (service) do update set dialect = excluded.dialect, found_at = now()
      where known.dialect <> excluded.dialect
    `.execute(tx),
  );
}
