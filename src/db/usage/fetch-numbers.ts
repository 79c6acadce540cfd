// Fetch numbers: a later fetch has a higher number in any process, to within VALID_MS. Also raises sequences that are behind the stored rows.

import { sql } from "kysely";
import type { Logger } from "pino";
import { batched } from "../../async.ts";
import type { Database } from "../connection/database.ts";
import { withRetries } from "../connection/transaction.ts";

export type NextFetchNo = () => Promise<number>;

/** How many extra numbers a query takes, for calls that begin shortly afterwards. */
const SPARE = 128;
/** How long a spare number is used after it was taken. If two processes read a slice within this time, the answer of either may be kept. */
const VALID_MS = 50;

/** Up to 1,000 callers that ask at the same time share one query. `now` is in milliseconds and never goes back. */
export function openFetchNumbers(db: Database, now: () => number = () => performance.now()): NextFetchNo {
  let spare: number[] = [];
  let takenMs = Number.NEGATIVE_INFINITY;
  const take = batched<undefined, number>(
    async (wanted) => {
      const askedMs = now();
      // Reading one text is several times as fast as reading a row for each number.
      const statement = sql<{ numbers: string }>`
        select pg_catalog.string_agg(pg_catalog.nextval('usage_export.fetch_no')::pg_catalog.text, ' ') as numbers
        from pg_catalog.generate_series(1, ${wanted.length + SPARE}::pg_catalog.int4)
      `;
      const { rows } = await withRetries(() => statement.execute(db));
      const numbers = rows.flatMap((row) => row.numbers.split(" ").map(Number));
      spare = numbers.splice(wanted.length);
      takenMs = askedMs;
      return numbers;
    },
    { weightMax: 1_000 },
  );
  return async () => (now() - takenMs <= VALID_MS ? spare.shift() : undefined) ?? (await take(undefined));
}

/** More numbers than other processes take between the reading of a sequence and its raising, so that no sequence is lowered. */
const SEQUENCE_MARGIN = 100_000;

/** Raises sequences that are behind the stored rows, as after logical replication: else new answers seem old, and new rows get used ids. */
export async function raiseLaggingSequences(db: Database, log?: Pick<Logger, "warn">): Promise<readonly string[]> {
  const sequenceAndHighest = (table: string, column: string) => sql`
    select pg_catalog.pg_get_serial_sequence(${table}, ${column}), pg_catalog.max(${sql.ref(column)})::pg_catalog.int8
    from ${sql.table(table)}
  `;
  const raise = sql<{ name: string }>`
    select name, pg_catalog.setval(name::pg_catalog.regclass, stored + ${SEQUENCE_MARGIN})
    from (
      select 'usage_export.fetch_no' as name, greatest(
        (select pg_catalog.max(greatest(fetch_no, suspect_fetch_no)) from usage_export.slice),
        (select pg_catalog.max(fetch_no) from usage_export.undated_snapshot)
      ) as stored
      union all ${sequenceAndHighest("usage_export.series", "series_id")}
      union all ${sequenceAndHighest("usage_export.group_value", "group_id")}
      union all ${sequenceAndHighest("usage_export.key_event", "event_id")}
    ) numbered
    where stored > coalesce(pg_catalog.pg_sequence_last_value(name::pg_catalog.regclass), 0)
  `;
  const { rows } = await withRetries(() => raise.execute(db));
  const sequences = rows.map(({ name }) => name);
  if (sequences.length > 0) {
    log?.warn({ sequences }, "sequences were behind what is stored, as after logical replication, and were raised");
  }
  return sequences;
}
