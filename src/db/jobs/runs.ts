// The rows of runs: begun, counted request by request, ended and deleted.

import { sql } from "kysely";
import type { RunCounts, RunTrigger } from "../../usage/export.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { QUEUE_SCHEMA, storableText } from "../schema.ts";

export type NewRun = {
  readonly runId: string;
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: RunTrigger;
};

export async function startRun(db: Database, run: NewRun): Promise<void> {
  await inTransaction(db, (tx) =>
    tx
      .insertInto("usage_export.run")
      .values({ run_id: run.runId, kind: run.kind, job: run.job, trigger: run.trigger })
      .onConflict((conflict) => conflict.column("run_id").doNothing())
      .execute(),
  );
}

/** Called while the run works: a run that stops saying so was interrupted. */
export async function heartbeatRun(db: Database, runId: string): Promise<void> {
  await inTransaction(db, (tx) =>
    sql`update usage_export.run set heartbeat_at = now() where run_id = ${runId}`.execute(tx),
  );
}

export async function finishRun(
  db: Database,
  runId: string,
  status: "ok" | "failed" | "stopped",
  counts: RunCounts,
  error: string | undefined,
): Promise<void> {
  await inTransaction(db, (tx) =>
    tx
      .updateTable("usage_export.run")
      .set({
        status,
        finished_at: sql<Date>`now()`,
        requests: counts.requests,
        slices_planned: counts.planned,
        slices_complete: counts.complete,
        slices_suspect: counts.suspect,
        slices_failed: counts.failed,
        slices_undated: counts.undated,
        slices_stale: counts.stale,
        rows_changed: counts.rowsChanged,
        error: error === undefined ? null : storableText(error),
      })
      .where("run_id", "=", runId)
      .execute(),
  );
}

/** Limit for one statement: a job that runs every minute has some hundred thousand runs after a year or more. */
const DELETED_AT_ONCE = 10_000;

export type DeletedRuns = { readonly runs: number; readonly keyEvents: number };

/**
 * Deletes runs older than `keepDays`, and the events of keys that were retired longer ago than that. The newest run of each job,
 * outcome and trigger stays, because the job's health is read from it. `now` comes from another clock than the database's, and
 * the earlier of both counts: a clock set ahead must not delete everything.
 */
export async function deleteOldRuns(db: Database, keepDays: number, now: Date): Promise<DeletedRuns> {
  const before = sql`least(now(), ${now}::timestamptz) - make_interval(days => ${keepDays})`;
  let runs = 0;
  for (let last = DELETED_AT_ONCE; last === DELETED_AT_ONCE; runs += last) {
    const { numAffectedRows } = await inTransaction(db, (tx) =>
      sql`
        delete from usage_export.run where run_id in (
          select run_id from usage_export.run old
          where started_at < ${before} and heartbeat_at < ${before} and exists (
            select from usage_export.run newer
            where newer.kind = old.kind and newer.job = old.job and newer.started_at > old.started_at
              and newer.status = old.status and newer.trigger = old.trigger
          )
          order by started_at limit ${DELETED_AT_ONCE}
        )
      `.execute(tx),
    );
    last = Number(numAffectedRows ?? 0);
  }
  const { numAffectedRows } = await inTransaction(db, (tx) =>
    sql`
      delete from usage_export.key_event e using usage_export.api_key k
      where k.intent_id = e.intent_id and k.state = 'retired' and k.retired_at < ${before} and e.at < ${before}
    `.execute(tx),
  );
  return { runs, keyEvents: Number(numAffectedRows ?? 0) };
}

// Runs whose requests workers share: begun with the work that waits for them, counted request by request, and over with the
// last one.

export type ScheduledRun = NewRun & {
  /** The moment of its schedule; undefined where a gap or a person began it. */
  readonly scheduledFor: Date | undefined;
  /** "running" is worked at by whoever takes its requests; "skipped" is only a note that it should have been. */
  readonly status: "running" | "skipped";
  readonly error?: string;
};

/** False where there is a run of the job for that moment already. */
export async function insertRun(tx: Tx, run: ScheduledRun): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto("usage_export.run")
    .values({
      run_id: run.runId,
      kind: run.kind,
      job: run.job,
      trigger: run.trigger,
      scheduled_for: run.scheduledFor ?? null,
      status: run.status,
      error: run.error ?? null,
      ...(run.status === "skipped" && { finished_at: sql<Date>`now()` }),
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

/** Notes how many requests wait for the workers, and how many slices they read. Without any the run is over: others read all of it already. */
export async function recordQueuedRequests(
  tx: Tx,
  runId: string,
  { requests, slices }: { readonly requests: number; readonly slices: number },
): Promise<void> {
  await sql`
    update usage_export.run
    set requests_open = ${requests}::integer, slices_planned = ${slices},
      status = case when ${requests}::integer = 0 then 'ok' else status end,
      finished_at = case when ${requests}::integer = 0 then now() end
    where run_id = ${runId}
  `.execute(tx);
}

/** What became of one request of a run that workers share. */
export type RequestOutcome = {
  readonly complete: number;
  readonly suspect: number;
  readonly undated: number;
  readonly failed: number;
  readonly stale: number;
  readonly rowsChanged: number;
  readonly error: string | undefined;
};

export type RunEnd = {
  readonly runId: string;
  readonly job: string;
  readonly trigger: RunTrigger;
  readonly status: string;
  readonly seconds: number;
  /** The first error of the run. */
  readonly error: string | null;
  readonly counts: RunCounts;
};

/** What a statement that ends a run returns. */
const runEnd = sql`
  run_id as "runId", job, trigger, status, error,
  round(extract(epoch from finished_at - started_at))::double precision as seconds,
  json_build_object(
    'requests', requests, 'planned', slices_planned, 'complete', slices_complete, 'suspect', slices_suspect,
    'failed', slices_failed, 'undated', slices_undated, 'stale', slices_stale, 'rowsChanged', rows_changed
  ) as counts
`;

/** Counts a request, and ends the run with its last one. Returns the run where it is over now. */
export async function recordOutcome(tx: Tx, runId: string, settled: RequestOutcome): Promise<RunEnd | undefined> {
  const { complete, suspect, undated, failed, stale, rowsChanged, error } = settled;
  const { rows } = await sql<RunEnd & { open: number }>`
    update usage_export.run
    set requests_open = requests_open - 1, requests = requests + 1, slices_complete = slices_complete + ${complete},
      slices_suspect = slices_suspect + ${suspect}, slices_failed = slices_failed + ${failed},
      slices_undated = slices_undated + ${undated},
      slices_stale = slices_stale + ${stale}, rows_changed = rows_changed + ${rowsChanged}, heartbeat_at = now(),
      error = coalesce(error, ${error === undefined ? null : storableText(error)}),
      finished_at = case when requests_open = 1 then now() end,
      status = case when requests_open > 1 then 'running'
        when slices_suspect + ${suspect} + slices_failed + ${failed} = 0 then 'ok' else 'failed' end
    where run_id = ${runId} and requests_open > 0
    returning ${runEnd}, requests_open as open
  `.execute(tx);
  const { open, ...end } = rows[0] ?? {};
  return open === 0 ? (end as RunEnd) : undefined;
}

export type RunningRun = { readonly trigger: RunTrigger; readonly shared: boolean };

/** The runs of a job that are not over: those that workers share, and those of one process that still says it lives. */
export async function runningRuns(tx: Tx, kind: NewRun["kind"], job: string): Promise<readonly RunningRun[]> {
  const { rows } = await sql<RunningRun>`
    select trigger, requests_open is not null as shared from usage_export.run
    where kind = ${kind} and job = ${job} and status = 'running'
      and (requests_open is not null or heartbeat_at > now() - interval '1 minute')
  `.execute(tx);
  return rows;
}

/**
 * Ends runs whose work is not in the queue any more, as of somebody who emptied it: else they would stand in the way of
 * every later one. Returns them.
 */
export async function endRunsWithoutJobs(db: Database): Promise<readonly RunEnd[]> {
  const { rows } = await inTransaction(db, (tx) =>
    sql<RunEnd>`
      update usage_export.run r
      set status = 'failed', finished_at = now(), requests_open = 0,
        -- Without a window an answer has as many slices as it likes, and only the requests that are left can be counted.
        slices_failed = greatest(
          slices_planned - slices_complete - slices_suspect - slices_undated - slices_stale, slices_failed + requests_open
        ),
        error = coalesce(error, 'its work is not in the queue any more')
      where r.run_id in (
        select lost.run_id from usage_export.run lost
        where lost.status = 'running' and lost.requests_open > 0 and not exists (
          select from ${sql.id(QUEUE_SCHEMA, "job")} j
          where j.name in ('usage_request', 'usage_request_dead') and j.state::text in ('created', 'retry', 'active')
            and j.data->>'runId' = lost.run_id::text
        )
        for update skip locked
      )
      returning ${runEnd}
    `.execute(tx),
  );
  return rows;
}

/**
 * Renews the heartbeat of runs that workers share while some of their requests wait for a retry. A locked run is skipped: its
 * requests are being counted at this moment, so it needs no heartbeat, and whoever counts locks several runs in another order, so
 * waiting for it could deadlock.
 */
export async function heartbeatQueuedRuns(db: Database): Promise<void> {
  await inTransaction(db, (tx) =>
    sql`
      update usage_export.run set heartbeat_at = now()
      where run_id in (
        select run_id from usage_export.run
        where status = 'running' and requests_open is not null and heartbeat_at < now() - interval '15 seconds'
        for update skip locked
      )
    `.execute(tx),
  );
}
