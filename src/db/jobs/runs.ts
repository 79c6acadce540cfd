// The rows of runs and of their projects: started, counted project by project, ended and deleted.

import { type RawBuilder, sql } from "kysely";
import type { RunCounts, RunTrigger } from "../../usage/export.ts";
import type { Database } from "../connection/database.ts";
import { execute, inTransaction, type Tx } from "../connection/transaction.ts";
import { storableText } from "../storable-text.ts";
import { QUEUE_SCHEMA } from "./queue-names.ts";

export type NewRun = {
  readonly runId: string;
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: RunTrigger;
  /** Its scheduled time; undefined if missing days or a person caused the run. */
  readonly scheduledFor?: Date | undefined;
};

/** Starts a run of which a single process makes all requests, and ends it with `finishRun`. */
export async function startRun(db: Database, run: NewRun, projects: readonly RunProject[] = []): Promise<void> {
  await inTransaction(db, async (tx) => {
    if (await insertRun(tx, run)) await insertRunProjects(tx, run.runId, projects);
  });
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
  error: string | undefined,
): Promise<void> {
  const finish = sql`
    update usage_export.run
    set status = ${status}, finished_at = now(), error = ${error === undefined ? null : storableText(error)}
    where run_id = ${runId}
  `;
  await execute(db, finish);
}

/** Limit for one statement: a job that runs every minute has some hundred thousand runs after a year or more. */
const DELETED_AT_ONCE = 10_000;

export type DeletedRuns = { readonly runs: number; readonly keyEvents: number };

/**
 * Deletes runs older than `keepDays`, and the events of keys that were retired longer ago than that. The newest run of each job,
 * outcome and trigger stays, because the job's health is read from it. Ages are counted from the earlier of this machine's time, `now`,
 * and the database's time: a clock that was set ahead must not delete everything.
 */
export async function deleteOldRuns(db: Database, keepDays: number, now: Date): Promise<DeletedRuns> {
  const daysAgo = (days: number) => sql`least(now(), ${now}::timestamptz) - make_interval(days => ${days})`;
  const before = daysAgo(keepDays);
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

// The projects of a run. A queued run has a queue job for each, and the last project ends the run.

export type RunProject = { readonly projectId: string /** The slices to read. */; readonly planned: number };

export async function insertRunProjects(tx: Tx, runId: string, projects: readonly RunProject[]): Promise<void> {
  await sql`
    insert into usage_export.run_project (run_id, project_id, slices_planned)
    select ${runId}::uuid, * from unnest(
      ${projects.map(({ projectId }) => projectId)}::text[], ${projects.map(({ planned }) => planned)}::integer[]
    )
  `.execute(tx);
}

/** Lets the projects end the run, as their queue jobs are all in the queue. Without any the run ends at once. */
export async function markQueued(tx: Tx, runId: string, projects: number): Promise<void> {
  await sql`
    update usage_export.run
    set projects_open = ${projects}::integer, fetch_no = nextval('usage_export.fetch_no'),
      status = case when ${projects}::integer = 0 then 'ok' else status end,
      finished_at = case when ${projects}::integer = 0 then now() end
    where run_id = ${runId}
  `.execute(tx);
}

/** What a queue job needs to know of its run, and what earlier attempts at it did. */
export type OpenProject = {
  readonly job: string;
  /** Undefined for a run of missing days alone. */
  readonly scheduledFor: Date | undefined;
  readonly startedAt: Date;
  /** Answers with a higher number were asked for since the run began. */
  readonly fetchNo: number;
};

/** Undefined if the project, or the run, has ended. */
export async function openProject(db: Database, runId: string, projectId: string): Promise<OpenProject | undefined> {
  const { rows } = await sql<Omit<OpenProject, "scheduledFor"> & { readonly scheduledFor: Date | null }>`
    select r.job, r.scheduled_for as "scheduledFor", r.started_at as "startedAt", r.fetch_no::double precision as "fetchNo"
    from usage_export.run r join usage_export.run_project p using (run_id)
    where run_id = ${runId}::uuid and project_id = ${projectId} and p.finished_at is null and r.status = 'running'
  `.execute(db);
  return rows.map((row) => ({ ...row, scheduledFor: row.scheduledFor ?? undefined }))[0];
}

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

/** Adds what an attempt did that is to be repeated. */
export async function recordAttempt(
  db: Database,
  runId: string,
  projectId: string,
  { requests, rowsChanged }: RunCounts,
): Promise<void> {
  const add = sql`
    update usage_export.run_project set requests = requests + ${requests}, rows_changed = rows_changed + ${rowsChanged}
    where run_id = ${runId}::uuid and project_id = ${projectId} and finished_at is null
  `;
  await execute(db, add);
}

/** Ends the project, with its slices as they are now, and the run with its last project. Returns the run if it ended by this. Counts only once. */
export async function endProject(
  db: Database,
  runId: string,
  projectId: string,
  counts: RunCounts,
  error: string | undefined,
): Promise<RunEnd | undefined> {
  const { requests, planned, complete, suspect, failed, undated, stale, rowsChanged } = counts;
  const text = error === undefined ? null : storableText(error);
  const isBad = error !== undefined || suspect + failed > 0;
  const end = sql<{ readonly open: number | null }>`
    with ended as (
      update usage_export.run_project
      set finished_at = now(), requests = requests + ${requests}, slices_planned = ${planned}, slices_complete = ${complete},
        slices_suspect = ${suspect}, slices_failed = ${failed}, slices_undated = ${undated}, slices_stale = ${stale},
        rows_changed = rows_changed + ${rowsChanged}, error = ${text}
      where run_id = ${runId}::uuid and project_id = ${projectId} and finished_at is null
      returning run_id
    )
    update usage_export.run r
    set heartbeat_at = now(), error = coalesce(r.error, ${text}), projects_open = projects_open - 1,
      projects_failed = projects_failed + ${isBad ? 1 : 0}::integer,
      finished_at = case when projects_open = 1 then now() end,
      status = case when projects_open > 1 or projects_open is null then r.status
        when projects_failed + ${isBad ? 1 : 0}::integer = 0 then 'ok' else 'failed' end
    from ended where r.run_id = ended.run_id and r.status = 'running'
    returning projects_open as open
  `;
  const { rows } = await execute(db, end);
  return rows[0]?.open === 0 ? (await runEnds(db, [runId]))[0] : undefined;
}

async function runEnds(db: Database, runIds: readonly string[]): Promise<readonly RunEnd[]> {
  const { rows } = await sql<RunEnd>`
    select run_id as "runId", job, trigger, status, error,
      round(extract(epoch from finished_at - started_at))::double precision as seconds,
      json_build_object(
        'requests', requests, 'planned', slices_planned, 'complete', slices_complete, 'suspect', slices_suspect,
        'failed', slices_failed, 'undated', slices_undated, 'stale', slices_stale, 'rowsChanged', rows_changed
      ) as counts
    from bi.runs where run_id = any(${runIds}::uuid[])
  `.execute(db);
  return rows;
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
      and (projects_open is not null or heartbeat_at > now() - interval '1 minute')
  `.execute(tx);
  return rows;
}

/**
 * Ends queued runs that have no job left in the queue, because a project was given up after its last attempt, or somebody emptied the
 * queue: otherwise they would block every later run. Coverage has what is missing. Returns the ended runs.
 */
export async function endRunsWithoutJobs(db: Database): Promise<readonly RunEnd[]> {
  const end = sql<{ readonly runId: string }>`
    update usage_export.run r
    set status = 'failed', finished_at = now(), error = coalesce(error, 'projects were given up: their work is not in the queue any more')
    where r.run_id in (
      select lost.run_id from usage_export.run lost
      where lost.status = 'running' and lost.projects_open > 0 and not exists (
        select from ${sql.id(QUEUE_SCHEMA, "job")} j
        where j.name = ${"export"} and j.state::text in ('created', 'retry', 'active')
          and j.data->>'runId' = lost.run_id::text
      )
      for update skip locked
    )
    returning run_id as "runId"
  `;
  const ended = (await execute(db, end)).rows.map(({ runId }) => runId);
  return ended.length > 0 ? runEnds(db, ended) : [];
}
