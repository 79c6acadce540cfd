// Stores which dialect each service speaks, as a probe found it.

import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { inTransaction } from "./connection/transaction.ts";

export type FoundDialect = "interface" | "2026";

export async function storedDialect(db: Database, service: string): Promise<FoundDialect | undefined> {
  const { rows } = await sql<{ dialect: FoundDialect }>`
    select dialect from usage_export.service_dialect where service = ${service}
  `.execute(db);
  return rows[0]?.dialect;
}

export async function storeDialect(db: Database, service: string, dialect: FoundDialect): Promise<void> {
  await inTransaction(db, (tx) =>
    sql`
      insert into usage_export.service_dialect as known (service, dialect) values (${service}, ${dialect})
      on conflict (service) do update set dialect = excluded.dialect, found_at = now()
      where known.dialect <> excluded.dialect
    `.execute(tx),
  );
}
