// Repairs stored times after the database's clock, which all processes use, was set back, and sequences that a restore left behind.

import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { inTransaction, withRetries } from "./connection/transaction.ts";
import { QUEUE_SCHEMA } from "./jobs/queue-names.ts";

/** Smaller steps are ignored: a clock that is adjusted gradually, or another server's after a failover, may differ by this much. */
const CLOCK_STEP_SECONDS_MIN = 5;
/** The queue's longest retry delay is 256 s. */
const QUEUE_DELAY_SECONDS_MAX = 300;

/** By how many seconds the clock is behind the newest stored time; undefined if it was not set back. */
export async function secondsSetBack(db: Database): Promise<number | undefined> {
  // While the clock runs normally, none of these times is in the future. Every column is in a small table or has an index.
  const { rows } = await sql<{ seconds: number | null }>`
    select extract(epoch from greatest(
      (select max(last_seen_at) from usage_export.worker),
      (select max(scheduled_through) from usage_export.job),
      (select max(started_at) from usage_export.run),
      (select max(heartbeat_at) from usage_export.run where status = 'running'),
      (select max(greatest(heartbeat_on, start_after - make_interval(secs => ${QUEUE_DELAY_SECONDS_MAX})))
        from ${sql.id(QUEUE_SCHEMA, "job")} where state in ('created', 'retry', 'active'))
    ) - clock_timestamp())::double precision as seconds
  `.execute(db);
  const seconds = rows[0]?.seconds ?? 0;
  return seconds > CLOCK_STEP_SECONDS_MIN ? Math.round(seconds) : undefined;
}

/**
 * Resets stored times that lie in the future, because work would wait for them. After that, everything that is due by the current
 * clock runs. Safe to repeat, and from several processes at once. The history of numbers stays as it was recorded.
 */
export async function resetFutureTimes(db: Database): Promise<void> {
  const queue = (table: string) => sql.id(QUEUE_SCHEMA, table);
  const waiting = sql`state in ('created', 'retry', 'active')`;
  const statements = [
    // Reopens days that were closed in the future: by the current clock they were not over when they were read. Leaves out the slices of
    // undated answers: their `closed_at` is the midnight at the end of their day, which may rightly be in the future, and nothing reads
    // that day again.
    sql`
      update usage_export.slice set closed_at = null
      where closed_at > now() and closed_at <> (usage_date + 1)::timestamp at time zone 'UTC'
    `,
    capAtNow("slice", "attempted_at", "failing_since", "suspect_since"),
    // A day that is not over by the current clock is not due.
    sql`
      update usage_export.series set due_through = (now() at time zone 'UTC')::date - 1
      where due_through >= (now() at time zone 'UTC')::date
    `,
    // A series whose first run was planned while the clock was ahead: until its `due_from` came, none of its days would be due.
    sql`
      update usage_export.series set due_from = (now() at time zone 'UTC')::date where due_from > (now() at time zone 'UTC')::date
    `,
    sql`
      update ${queue("job")} set ${cappedAtNow("heartbeat_on", "start_after", "started_on")}
      where ${waiting} and greatest(heartbeat_on, start_after, started_on) > now()
    `,
    // These columns say when the queue last searched for the work of dead processes. With null it searches at once.
    ...["monitor_claim_on", "monitor_on", "maintain_on", "delta_on"].map(
      (column) => sql`update ${queue("queue")} set ${sql.id(column)} = null where ${sql.id(column)} > now()`,
    ),
    // A scheduled time in the future will come again.
    sql`update usage_export.run set scheduled_for = null where scheduled_for > now()`,
    capAtNow("run", "started_at", "heartbeat_at", "finished_at"),
    sql`update usage_export.job set scheduled_through = null where scheduled_through > now()`,
    capAtNow("job", "resumed_at", "paused_at"),
    // A list that was read in the future would count as newer than every reading to come.
    capAtNow("project_list", "read_at", "changed_at", "failing_since"),
    capAtNow("discovered_project", "last_seen_at", "missing_since", "vanished_at"),
    capAtNow("notice", "claimed_until"),
    capAtNow("worker", "started_at", "last_seen_at", "stopped_at"),
  ];
  // One transaction per statement: no statement needs another, and none holds locks while the next one waits.
  for (const statement of statements) await inTransaction(db, (tx) => statement.execute(tx));
}

/** Sets each of these times of the table that is in the future to now. */
function capAtNow(table: string, ...columns: readonly string[]) {
  const newest = sql`greatest(${sql.join(columns.map((name) => sql.id(name)))})`;
  return sql`update ${sql.id("usage_export", table)} set ${cappedAtNow(...columns)} where ${newest} > now()`;
}

/** Null stays null. */
function cappedAtNow(...columns: readonly string[]) {
  return sql.join(
    columns.map((name) => sql`${sql.id(name)} = case when ${sql.id(name)} > now() then now() else ${sql.id(name)} end`),
  );
}

/** Any fixed number works, but it must not change between versions. */
const SEQUENCE_LOCK = 7_205_521_846_403;

/** More numbers than other processes take between reading a sequence and raising it, so that the raise never lowers it. */
const SEQUENCE_MARGIN = 100_000;

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
