// Raises the sequences that are behind the stored rows. Logical replication and copies of the tables alone do not copy sequences:
// new fetches would then count as older than stored ones, and new rows would get numbers that are in use.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { again, inTransaction } from "./transaction.ts";

/** Any fixed number works, but it must not change between versions. */
const LOCK = 7_205_521_846_403;

/** More numbers than other processes use between reading a sequence and raising it, so that the raise can't move it back. */
const MARGIN = 100_000;

/** Safe from several processes at once. Returns the names of the sequences that were behind. */
export async function raiseSequences(db: Database): Promise<readonly string[]> {
  const { rows } = await again(() => sql<Behind>`select name from ${behind()}`.execute(db));
  if (rows.length === 0) return [];
  return inTransaction(db, async (tx) => {
    await sql`select pg_catalog.pg_advisory_xact_lock(${sql.lit(LOCK)})`.execute(tx);
    const { rows: raised } = await sql<Behind>`
      select name, pg_catalog.setval(name::pg_catalog.regclass, stored + ${MARGIN}) from ${behind()}
    `.execute(tx);
    return raised.map(({ name }) => name);
  });
}

type Behind = { readonly name: string };

function behind() {
  const identity = (table: string, column: string) => sql`
    select pg_catalog.pg_get_serial_sequence(${table}, ${column}), pg_catalog.max(${sql.ref(column)})::pg_catalog.int8
    from ${sql.table(table)}
  `;
  return sql`
    (
      select 'usage_export.fetch_no' as name, greatest(
        (select pg_catalog.max(greatest(fetch_no, suspect_fetch_no)) from usage_export.slice),
        (select pg_catalog.max(fetch_no) from usage_export.undated_snapshot)
      ) as stored
      union all ${identity("usage_export.series", "series_id")}
      union all ${identity("usage_export.group_value", "group_id")}
      union all ${identity("usage_export.key_event", "event_id")}
    ) numbered
    where stored > coalesce(pg_catalog.pg_sequence_last_value(name::pg_catalog.regclass), 0)
  `;
}
