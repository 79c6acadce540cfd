// The database's clock, which all processes go by. Where somebody sets it back, what it stored before lies in its future: until it
// has come there again, work would wait for moments that are not meant any more.

import { sql } from "kysely";
import type { Database } from "./database.ts";
import { QUEUE_SCHEMA } from "./queue.ts";
import { inTransaction } from "./transaction.ts";

/** What a clock that is slowed down, or another server's after a failover, may differ by without anybody noticing. */
const STEP_SECONDS_MIN = 5;
/** The queue's longest delay before another try is 256 s. */
const QUEUE_DELAY_SECONDS_MAX = 300;

/** By how many seconds the clock went back behind what it stored; undefined where it did not. */
export async function secondsSetBack(db: Database): Promise<number | undefined> {
  // None of these is ever in the future while the clock goes on. All are of small tables, or have an index.
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
  return seconds > STEP_SECONDS_MIN ? Math.round(seconds) : undefined;
}

/**
 * Brings what lies in the clock's future, and decides what is done when, back to now, so that all that is due by the clock as it is
 * runs. Safe to repeat, and from several processes at once. The history of numbers stays: it says what was seen when.
 */
export async function forgetFuture(db: Database): Promise<void> {
  const queue = (table: string) => sql.id(QUEUE_SCHEMA, table);
  const waiting = sql`state in ('created', 'retry', 'active')`;
  const statements = [
    // The day was not over when it was read.
    sql`update usage_export.slice set closed_at = null where closed_at > now()`,
    sql`
      update usage_export.slice set ${toNow("attempted_at", "failing_since", "suspect_since")}
      where greatest(attempted_at, failing_since, suspect_since) > now()
    `,
    // Today is not over, and not due.
    sql`
      update usage_export.series set due_through = (now() at time zone 'UTC')::date - 1
      where due_through >= (now() at time zone 'UTC')::date
    `,
    sql`
      update ${queue("job")} set ${toNow("heartbeat_on", "start_after", "started_on")}
      where ${waiting} and greatest(heartbeat_on, start_after, started_on) > now()
    `,
    // When the queue looked last for the work of processes that are gone: it looks again at once.
    ...["monitor_claim_on", "monitor_on", "maintain_on", "delta_on"].map(
      (column) => sql`update ${queue("queue")} set ${sql.id(column)} = null where ${sql.id(column)} > now()`,
    ),
    // A moment of the schedule that was not there yet comes again.
    sql`update usage_export.run set scheduled_for = null where scheduled_for > now()`,
    sql`
      update usage_export.run set ${toNow("started_at", "heartbeat_at", "finished_at")}
      where greatest(started_at, heartbeat_at, finished_at) > now()
    `,
    sql`update usage_export.job set scheduled_through = null where scheduled_through > now()`,
    sql`update usage_export.job set ${toNow("resumed_at", "paused_at")} where greatest(resumed_at, paused_at) > now()`,
    sql`update usage_export.notice set claimed_until = now() where claimed_until > now()`,
    sql`
      update usage_export.worker set ${toNow("started_at", "last_seen_at", "stopped_at")}
      where greatest(started_at, last_seen_at, stopped_at) > now()
    `,
  ];
  // One by one, as none needs another, and so that none holds locks while it waits.
  for (const statement of statements) await inTransaction(db, (tx) => statement.execute(tx));
}

/** What is null stays so. */
function toNow(...columns: readonly string[]) {
  return sql.join(
    columns.map((name) => sql`${sql.id(name)} = case when ${sql.id(name)} > now() then now() else ${sql.id(name)} end`),
  );
}
