// Stores runs and their projects: their start, counts and end. Deletes old ones.

import { sql } from "kysely";
import { errorText } from "../../errors.ts";
import type { Scrubber } from "../../secret.ts";
import { storableText } from "../../text.ts";
import type { RunCounts, RunTrigger } from "../../usage/counts.ts";
import type { Source } from "../../usage/dimensions.ts";
import type { Database } from "../connection/database.ts";
import { execute, inTransaction, type Tx } from "../connection/transaction.ts";
import { type JobId, QUEUE_SCHEMA } from "./jobs.ts";

export type NewRun = {
  readonly runId: string;
  readonly kind: JobId["kind"];
  readonly job: string;
  readonly trigger: RunTrigger;
  /** The scheduled time; undefined if no schedule caused the run. */
  readonly scheduledFor?: Date | undefined;
};

/** `planned`: how many slices of the project the run is to read. */
export type RunProject = { readonly projectId: string; readonly planned: number };

/** `error` is the first error of the run. */
export type RunOutcome = { readonly status: "ok" | "failed"; readonly error: string | undefined };

/** A run counts as interrupted after three times as long without a heartbeat. */
const HEARTBEAT_MS = 10_000;

/** Calls `work`, and records the start, the heartbeats and the end of this run, which has no queue jobs. Returns or throws what `work` does. */
export async function recordRun<T extends RunOutcome>(
  { db, app }: { readonly db: Database; readonly app: { readonly signal: AbortSignal; readonly scrubber: Scrubber } },
  run: NewRun,
  projects: readonly RunProject[],
  work: () => Promise<T>,
): Promise<T> {
  const finish = (status: FinalStatus, error: string | undefined) =>
    finishRun(db, run.runId, status, error && app.scrubber.scrub(error));
  await startRun(db, run, projects);
  const heartbeat = setInterval(() => heartbeatRun(db, run.runId).catch(() => {}), HEARTBEAT_MS);
  try {
    const result = await work();
    await finish(result.status, result.error);
    return result;
  } catch (error) {
    // If the database is out of reach, this also fails. The missing heartbeat then shows that the run was interrupted.
    await finish(app.signal.aborted ? "stopped" : "failed", errorText(error)).catch(() => {});
    throw error;
  } finally {
    clearInterval(heartbeat);
  }
}

export async function startRun(db: Database, run: NewRun, projects: readonly RunProject[] = []): Promise<void> {
  await inTransaction(db, (tx) => insertRun(tx, run, projects, null));
}

/** Returns false if the job already has a run for `scheduledFor`. `projectsOpen`: how many queue jobs the run gets; null if it is not queued. */
export async function insertRun(
  tx: Tx,
  { runId, kind, job, trigger, scheduledFor }: NewRun,
  projects: readonly RunProject[],
  projectsOpen: number | null = projects.length,
): Promise<boolean> {
  const isOver = projectsOpen === 0;
  const { rows } = await sql`
    insert into usage_export.run (run_id, kind, job, trigger, scheduled_for, status, finished_at, projects_open, fetch_no)
    values (
      ${runId}, ${kind}, ${job}, ${trigger}, ${scheduledFor ?? null}, ${isOver ? "ok" : "running"}, case when ${isOver} then now() end,
      ${projectsOpen}, nextval('usage_export.fetch_no')
    )
    on conflict do nothing returning run_id
  `.execute(tx);
  if (rows.length === 0) return false;
  await sql`
    insert into usage_export.run_project (run_id, project_id, slices_planned)
    select ${runId}::uuid, * from unnest(${projects.map((one) => one.projectId)}::text[], ${projects.map((one) => one.planned)}::integer[])
  `.execute(tx);
  return true;
}

export async function heartbeatRun(db: Database, runId: string): Promise<void> {
  await execute(db, sql`update usage_export.run set heartbeat_at = now() where run_id = ${runId}`);
}

type FinalStatus = "ok" | "failed" | "stopped";

export async function finishRun(db: Database, runId: string, status: FinalStatus, error: string | undefined) {
  const finish = sql`
    update usage_export.run
    set status = ${status}, finished_at = now(), error = ${error === undefined ? null : storableText(error)}
    where run_id = ${runId}
  `;
  await execute(db, finish);
}

/** Deletes old runs, key events, data changes and workers. Keeps each job's newest run of each outcome and trigger, to judge its health. */
export async function deleteOldRecords(db: Database, keepDays: number) {
  const before = sql`now() - make_interval(days => ${keepDays})`;
  const deleteRuns = sql`
    delete from usage_export.run old
    where started_at < ${before} and heartbeat_at < ${before} and exists (
      select from usage_export.run newer
      where newer.kind = old.kind and newer.job = old.job and newer.started_at > old.started_at
        and newer.status = old.status and newer.trigger = old.trigger
    )
  `;
  const deleteKeyEvents = sql`
    delete from usage_export.key_event e using usage_export.api_key k
    where k.intent_id = e.intent_id and k.state = 'retired' and k.retired_at < ${before} and e.at < ${before}
  `;
  // No process needs older changes: openRowCache keeps rows for the current day at most.
  await execute(db, sql`delete from usage_export.data_change where changed_at < now() - interval '2 days'`);
  await execute(db, sql`delete from usage_export.worker where last_seen_at < now() - interval '7 days'`);
  const { numAffectedRows: runs } = await execute(db, deleteRuns);
  const { numAffectedRows: keyEvents } = await execute(db, deleteKeyEvents);
  return { runs: Number(runs ?? 0), keyEvents: Number(keyEvents ?? 0) };
}

// The projects of a run. A queued run has a queue job for each project, and its last project ends it.

type RunRef = Pick<NewRun, "runId" | "kind" | "job" | "trigger">;

export type OpenProject = RunRef & {
  readonly projectId: string;
  /** Null if no schedule caused the run. */
  readonly scheduledFor: Date | null;
  readonly startedAt: Date;
  /** The run's fetch number: requests with a higher one began after the run. */
  readonly fetchNo: number;
};

/** What the planning worker puts into the queue job. */
export type ProjectJob = Pick<OpenProject, "runId" | "projectId">;

/** Returns an entry for each of `asked`: undefined if the project or the run has ended. */
export async function readOpenProjects(db: Database, asked: readonly ProjectJob[]) {
  const { rows } = await sql<OpenProject>`
    select run_id as "runId", project_id as "projectId", r.kind, r.job, r.trigger, r.scheduled_for as "scheduledFor", r.started_at as "startedAt", r.fetch_no::double precision as "fetchNo"
    from usage_export.run r join usage_export.run_project p using (run_id)
    where (run_id, project_id) in (
        select * from unnest(${asked.map(({ runId }) => runId)}::uuid[], ${asked.map(({ projectId }) => projectId)}::text[])
      ) and p.finished_at is null and r.status = 'running'
  `.execute(db);
  return asked.map((one) => rows.find(({ runId, projectId }) => runId === one.runId && projectId === one.projectId));
}

export type StoredRun = RunCounts &
  RunRef & {
    readonly status: string;
    readonly startedAt: Date;
    readonly finishedAt: Date | null;
    readonly error: string | null;
  };

/** How a run or a project of it ended. */
export const outcomeColumns = sql`
  finished_at as "finishedAt", error, requests, slices_planned as planned, slices_complete as complete, slices_suspect as suspect,
  slices_failed as failed, slices_undated as undated, slices_stale as stale, rows_changed::double precision as "rowsChanged"
`;
/** The columns of bi.runs for a StoredRun. */
export const runColumns = sql`run_id as "runId", job, kind, trigger, status, started_at as "startedAt", ${outcomeColumns}`;

/** Adds the requests and changed rows of an attempt. The project is tried again: it does not end, and its last attempt counts the slices. */
export async function recordAttempt(db: Database, runId: string, projectId: string, counts: RunCounts): Promise<void> {
  const add = sql`
    update usage_export.run_project
    set requests = requests + ${counts.requests}, rows_changed = rows_changed + ${counts.rowsChanged}
    where run_id = ${runId}::uuid and project_id = ${projectId} and finished_at is null
  `;
  await execute(db, add);
}

export type ProjectEnd = ProjectJob & {
  readonly counts: RunCounts;
  readonly error?: string | undefined;
  /** The source that the project's key may read. Days of the source that failed because a key was refused become due at once. */
  readonly readableSource?: Source | undefined;
};

/**
 * Ends projects that have not ended yet, and each run with its last project. Returns, for each of `ends`, the run that ended with the project,
 * or undefined. If several projects end the same run, only the last of them gets it. Separate statements would wait for the lock of the run's row.
 */
export async function endProjects(db: Database, ends: readonly ProjectEnd[]) {
  const column = (name: keyof RunCounts) => sql`${ends.map(({ counts }) => counts[name])}::bigint[]`;
  const errors = ends.map(({ error }) => (error === undefined ? null : storableText(error)));
  const isBad = ends.map(({ error, counts }) => error !== undefined || counts.suspect + counts.failed > 0);
  const end = sql<{ readonly runId: string; readonly open: number | null }>`
    with given as (
      select * from unnest(
        ${ends.map(({ runId }) => runId)}::uuid[], ${ends.map(({ projectId }) => projectId)}::text[], ${errors}::text[],
        ${isBad}::boolean[], ${ends.map(({ readableSource }) => readableSource ?? null)}::text[], ${column("requests")}, ${column("planned")},
        ${column("complete")}, ${column("suspect")}, ${column("failed")}, ${column("undated")}, ${column("stale")},
        ${column("rowsChanged")}
      ) as given (run_id, project_id, error, is_bad, readable_source, requests, planned, complete, suspect, failed, undated, stale, changed)
    ), ended as (
      update usage_export.run_project p
      set finished_at = now(), requests = p.requests + g.requests, slices_planned = g.planned, slices_complete = g.complete,
        slices_suspect = g.suspect, slices_failed = g.failed, slices_undated = g.undated, slices_stale = g.stale,
        rows_changed = p.rows_changed + g.changed, error = g.error
      from given g where p.run_id = g.run_id and p.project_id = g.project_id and p.finished_at is null
      returning p.run_id, p.project_id, g.error, g.is_bad, g.readable_source
    ), made_due as (
      update usage_export.slice sl
      set attempted_at = ${LONG_AGO}, error_code = null,
        error = 'the key was refused, and works since: the day is read again'
      from ended e join usage_export.run r using (run_id)
        join usage_export.series s on s.project_id = e.project_id and s.source = e.readable_source
      where sl.series_id = s.series_id and sl.status = 'failed' and sl.error_code = 'unauthorized'
        and sl.attempted_at < r.started_at
    ), counted as (
      select run_id, count(*)::integer as ended, count(*) filter (where is_bad)::integer as bad, min(error) as error
      from ended group by run_id
    )
    update usage_export.run r
    set heartbeat_at = now(), error = coalesce(r.error, c.error), projects_open = projects_open - c.ended,
      projects_failed = projects_failed + c.bad, finished_at = case when projects_open = c.ended then now() end,
      status = case when projects_open > c.ended or projects_open is null then r.status
        when projects_failed + c.bad = 0 then 'ok' else 'failed' end
    from counted c where r.run_id = c.run_id and r.status = 'running'
    returning r.run_id as "runId", projects_open as open
  `;
  const { rows } = await execute(db, end);
  const ended = rows.filter(({ open }) => open === 0);
  const runs = await storedRuns(db, ended);
  const lastIndex = new Map(ends.map(({ runId }, i) => [runId, i]));
  return ends.map(({ runId }, i) => (lastIndex.get(runId) === i ? runs.find((run) => run.runId === runId) : undefined));
}

async function storedRuns(db: Database, runs: readonly { readonly runId: string }[]): Promise<readonly StoredRun[]> {
  if (runs.length === 0) return [];
  const ids = runs.map(({ runId }) => runId);
  return (await sql<StoredRun>`select ${runColumns} from bi.runs where run_id = any(${ids}::uuid[])`.execute(db)).rows;
}

/** A queued run that has not ended, or a run of one process with a recent heartbeat. */
const IS_IN_PROGRESS = sql`status = 'running' and (projects_open is not null or heartbeat_at > now() - interval '30 seconds')`;

export async function runningRuns(tx: Tx, { kind, name }: JobId) {
  const { rows } = await sql<Pick<NewRun, "trigger">>`
    select trigger from usage_export.run where kind = ${kind} and job = ${name} and ${IS_IN_PROGRESS}
  `.execute(tx);
  return rows;
}

/**
 * The open projects of a run in progress, and projects of runs of the last hour that no worker had in its configuration: they have an error and
 * no planned slice. A failed rotation has the same, but callers ask only about rotations that no process has ever begun.
 */
export async function runningOrUnconfiguredProjects(tx: Tx, { kind, name }: JobId): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ readonly projectId: string }>`
    select distinct p.project_id as "projectId" from usage_export.run r join usage_export.run_project p using (run_id)
    where r.kind = ${kind} and r.job = ${name} and (
      (${IS_IN_PROGRESS} and p.finished_at is null)
      or (r.started_at > now() - interval '1 hour' and p.error is not null and p.slices_planned = 0)
    )
  `.execute(tx);
  return new Set(rows.map(({ projectId }) => projectId));
}

/** Ends and returns runs whose jobs have all left the queue, for example after the last attempt. Such runs would block later ones. */
export async function endRunsWithoutJobs(db: Database): Promise<readonly StoredRun[]> {
  const end = sql<{ readonly runId: string }>`
    update usage_export.run r
    set status = 'failed', finished_at = now(), error = coalesce(error, 'projects were given up: their work is not in the queue any more')
    where r.run_id in (
      select lost.run_id from usage_export.run lost
      where lost.status = 'running' and lost.projects_open > 0 and not exists (
        select from ${sql.id(QUEUE_SCHEMA, "job")} j
        where j.name = lost.kind and j.state::text in ('created', 'retry', 'active')
          and j.data->>'runId' = lost.run_id::text
      )
      for update skip locked
    )
    returning run_id as "runId"
  `;
  return storedRuns(db, (await execute(db, end)).rows);
}

/** A failed day becomes due at once if this is stored as the time of its last attempt. */
const LONG_AGO = sql`to_timestamp(0)`;

/** Makes the days that failed because a key was refused due at once: a worker that starts may have another key. */
export async function retryUnauthorizedDays(db: Database): Promise<void> {
  const retry = sql`
    update usage_export.slice set attempted_at = ${LONG_AGO} where status = 'failed' and error_code = 'unauthorized'
  `;
  await execute(db, retry);
}
