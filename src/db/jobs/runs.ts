// The rows of runs: started, counted request by request, ended and deleted.

import { type RawBuilder, sql } from "kysely";
import type { RunCounts, RunTrigger } from "../../usage/export.ts";
import type { Database } from "../connection/database.ts";
import { execute, inTransaction, type Tx } from "../connection/transaction.ts";
import { storableText } from "../storable-text.ts";
import { QUEUE_SCHEMA } from "./queue-names.ts";
import { deleteRequests } from "./run-requests.ts";

export type NewRun = {
  readonly runId: string;
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: RunTrigger;
  /** Its scheduled time; undefined if missing days or a person caused the run. */
  readonly scheduledFor?: Date | undefined;
};

export async function startRun(db: Database, run: NewRun): Promise<void> {
  await inTransaction(db, (tx) => insertRun(tx, run));
}

/** False if the job already has a run for that scheduled time. */
export async function insertRun(tx: Tx, run: NewRun): Promise<boolean> {
  return insert(tx, run, sql`'running', null, null`);
}

/** Records that no run was started for this scheduled time, and why. */
export async function insertSkippedRun(tx: Tx, run: NewRun, reason: string): Promise<void> {
  await insert(tx, run, sql`'skipped', now(), ${reason}`);
}

async function insert(
  tx: Tx,
  { runId, kind, job, trigger, scheduledFor }: NewRun,
  statusFinishedError: RawBuilder<unknown>,
): Promise<boolean> {
  const { rows } = await sql`
    insert into usage_export.run (run_id, kind, job, trigger, scheduled_for, status, finished_at, error)
    values (${runId}, ${kind}, ${job}, ${trigger}, ${scheduledFor ?? null}, ${statusFinishedError})
    on conflict do nothing returning run_id
  `.execute(tx);
  return rows.length > 0;
}

/** Called repeatedly while the process works on the run: a run whose heartbeats stop counts as interrupted. */
export async function heartbeatRun(db: Database, runId: string): Promise<void> {
  await execute(db, sql`update usage_export.run set heartbeat_at = now() where run_id = ${runId}`);
}

export async function finishRun(
  db: Database,
  runId: string,
  status: "ok" | "failed" | "stopped",
  { requests, planned, complete, suspect, failed, undated, stale, rowsChanged }: RunCounts,
  error: string | undefined,
): Promise<void> {
  const finish = sql`
    update usage_export.run
    set status = ${status}, finished_at = now(), requests = ${requests}, slices_planned = ${planned},
      slices_complete = ${complete}, slices_suspect = ${suspect}, slices_failed = ${failed}, slices_undated = ${undated},
      slices_stale = ${stale}, rows_changed = ${rowsChanged}, error = ${error === undefined ? null : storableText(error)}
    where run_id = ${runId}
  `;
  await execute(db, finish);
}

/** Limit for one statement: a job that runs every minute has some hundred thousand runs after a year or more. */
const DELETED_AT_ONCE = 10_000;

/** Requests of runs are kept for at most so many days after the run started: at 5,000 projects a night has 80,000 of them, which take 8 MB. */
const REQUESTS_KEPT_DAYS = 14;

export type DeletedRuns = { readonly runs: number; readonly keyEvents: number };

/**
 * Deletes runs older than `keepDays`, the requests of older ones, and the events of keys that were retired longer ago than that. The newest run of each job,
 * outcome and trigger stays, because the job's health is read from it. Ages are counted from the earlier of this machine's time, `now`,
 * and the database's time: a clock that was set ahead must not delete everything.
 */
export async function deleteOldRuns(db: Database, keepDays: number, now: Date): Promise<DeletedRuns> {
  const daysAgo = (days: number) => sql`least(now(), ${now}::timestamptz) - make_interval(days => ${days})`;
  const before = daysAgo(keepDays);
  await deleteRequests(db, daysAgo(Math.min(keepDays, REQUESTS_KEPT_DAYS)));
  const deleteRuns = sql`
    delete from usage_export.run where run_id in (
      select run_id from usage_export.run old
      where started_at < ${before} and heartbeat_at < ${before} and exists (
        select from usage_export.run newer
        where newer.kind = old.kind and newer.job = old.job and newer.started_at > old.started_at
          and newer.status = old.status and newer.trigger = old.trigger
      )
      order by started_at limit ${DELETED_AT_ONCE}
    )
  `;
  let runs = 0;
  for (let last = DELETED_AT_ONCE; last === DELETED_AT_ONCE; runs += last) {
    last = Number((await execute(db, deleteRuns)).numAffectedRows ?? 0);
  }
  const deleteKeyEvents = sql`
    delete from usage_export.key_event e using usage_export.api_key k
    where k.intent_id = e.intent_id and k.state = 'retired' and k.retired_at < ${before} and e.at < ${before}
  `;
  return { runs, keyEvents: Number((await execute(db, deleteKeyEvents)).numAffectedRows ?? 0) };
}

// Queued runs: their requests are queue jobs that all workers share. Each finished request is counted, and the last one ends the run.

/**
 * Records how many requests were queued for the run, and how many slices they read. If none was queued, the run ends at once: the
 * queue has its requests for other runs already.
 */
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

export type RunEnd = {
  readonly runId: string;
  readonly job: string;
  readonly trigger: RunTrigger;
  readonly status: string;
  readonly seconds: number;
  readonly finishedAt: string;
  /** The first error of the run. */
  readonly error: string | null;
  readonly counts: RunCounts;
};

/** The columns that a statement that ends a run returns. */
const runEnd = sql`
  run_id as "runId", job, trigger, status, error, finished_at::text as "finishedAt",
  round(extract(epoch from finished_at - started_at))::double precision as seconds,
  json_build_object(
    'requests', requests, 'planned', slices_planned, 'complete', slices_complete, 'suspect', slices_suspect,
    'failed', slices_failed, 'undated', slices_undated, 'stale', slices_stale, 'rowsChanged', rows_changed
  ) as counts
`;

/**
 * Counts the outcomes of requests of a queued run. The last request ends the run. Returns the run if it ended; `hasEnded` tells whether
 * that was committed.
 */
export async function recordOutcomes(
  tx: Tx,
  runId: string,
  { requests, complete, suspect, undated, failed, stale, rowsChanged }: RunCounts,
  error: string | undefined,
): Promise<RunEnd | undefined> {
  const { rows } = await sql<RunEnd & { open: number }>`
    update usage_export.run
    set requests_open = requests_open - ${requests}, requests = requests + ${requests}, slices_complete = slices_complete + ${complete},
      slices_suspect = slices_suspect + ${suspect}, slices_failed = slices_failed + ${failed},
      slices_undated = slices_undated + ${undated},
      slices_stale = slices_stale + ${stale}, rows_changed = rows_changed + ${rowsChanged}, heartbeat_at = now(),
      error = coalesce(error, ${error === undefined ? null : storableText(error)}),
      finished_at = case when requests_open <= ${requests} then now() end,
      status = case when requests_open > ${requests} then 'running'
        when slices_suspect + ${suspect} + slices_failed + ${failed} = 0 then 'ok' else 'failed' end
    where run_id = ${runId} and requests_open > 0
    returning ${runEnd}, requests_open as open
  `.execute(tx);
  const { open, ...end } = rows[0] ?? {};
  return open === 0 ? (end as RunEnd) : undefined;
}

/** Whether the run has ended at that time, and not only in a transaction that was rolled back. */
export async function hasEnded(db: Database, { runId, finishedAt }: RunEnd): Promise<boolean> {
  const { rows } = await sql`
    select from usage_export.run where run_id = ${runId} and finished_at = ${finishedAt}::text::timestamptz
  `.execute(db);
  return rows.length > 0;
}

/** The runs of a job that have not ended: queued runs, and runs of a single process that have a recent heartbeat. */
export async function runningRuns(
  tx: Tx,
  kind: NewRun["kind"],
  job: string,
): Promise<readonly { readonly trigger: RunTrigger }[]> {
  const { rows } = await sql<{ readonly trigger: RunTrigger }>`
    select trigger from usage_export.run
    where kind = ${kind} and job = ${job} and status = 'running'
      and (requests_open is not null or heartbeat_at > now() - interval '1 minute')
  `.execute(tx);
  return rows;
}

/**
 * Ends queued runs that have no job left in the queue, for example because somebody emptied it: otherwise they would block every
 * later run. Returns the ended runs.
 */
export async function endRunsWithoutJobs(db: Database): Promise<readonly RunEnd[]> {
  const end = sql<RunEnd>`
    update usage_export.run r
    set status = 'failed', finished_at = now(), requests_open = 0,
      -- Without a window an answer has any number of slices, so only the open requests can be counted.
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
  `;
  const ended = await execute(db, end);
  await execute(
    db,
    sql`
      delete from usage_export.queued_request q where not exists (
        select from usage_export.run r where r.run_id = q.run_id and r.status = 'running'
      )
    `,
  );
  return ended.rows;
}

/**
 * Renews the heartbeat of queued runs while some of their requests wait for a retry. A run that another transaction has locked is
 * skipped. That transaction counts requests of the run and renews its heartbeat; it may lock several runs in another order, so waiting
 * for it could deadlock.
 */
export async function heartbeatQueuedRuns(db: Database): Promise<void> {
  const heartbeat = sql`
    update usage_export.run set heartbeat_at = now()
    where run_id in (
      select run_id from usage_export.run
      where status = 'running' and requests_open is not null and heartbeat_at < now() - interval '15 seconds'
      for update skip locked
    )
  `;
  await execute(db, heartbeat);
}
