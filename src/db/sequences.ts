// Repairs sequences that a restore left behind.

import { sql } from "kysely";
import type { Logger } from "pino";
import type { Database } from "./connection/database.ts";
import { inTransaction, withRetries } from "./connection/transaction.ts";

/** Any fixed number works, but it must not change between versions. */
const SEQUENCE_LOCK = 7_205_521_846_403;

/** More numbers than other processes take between reading a sequence and raising it, so that the raise never lowers it. */
const SEQUENCE_MARGIN = 100_000;

/**
 * Must run before anything is written. If tables were copied without their sequences, the stored fetches have higher numbers than
 * new ones, and every new answer would count as stale.
 */
export async function raiseLaggingSequences(log: Pick<Logger, "warn">, db: Database): Promise<void> {
  const sequences = await raiseSequences(db);
  if (sequences.length > 0) {
    log.warn({ sequences }, "sequences were behind what is stored, as after logical replication, and were raised");
  }
}

/**
 * Raises the sequences that are behind the stored rows, and returns their names. Logical replication and copies of tables do not
 * copy sequences: new fetches would count as older than stored ones, and new rows would get numbers that are in use. Safe from
 * several processes at once.
 */
export async function raiseSequences(db: Database): Promise<readonly string[]> {
  const { rows } = await withRetries(() => sql<SequenceBehind>`select name from ${sequencesBehind()}`.execute(db));
  if (rows.length === 0) return [];
  return inTransaction(db, async (tx) => {
    await sql`select pg_catalog.pg_advisory_xact_lock(${sql.lit(SEQUENCE_LOCK)})`.execute(tx);
    const { rows: raised } = await sql<SequenceBehind>`
      select name, pg_catalog.setval(name::pg_catalog.regclass, stored + ${SEQUENCE_MARGIN}) from ${sequencesBehind()}
    `.execute(tx);
    return raised.map(({ name }) => name);
  });
}

type SequenceBehind = { readonly name: string };

function sequencesBehind() {
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
