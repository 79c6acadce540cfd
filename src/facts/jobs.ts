// The health of jobs: when each runs next, how it ran last, and whether it waits for a worker. Also the runs that pages show.

import { type RawBuilder, sql } from "kysely";
import { type Config, type ConfiguredJob, jobsOf } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SECONDS, readAtOneMoment, type Tx } from "../db/connection/transaction.ts";
import { type Pause, type StoredJob, storedJobs } from "../db/jobs/jobs.ts";
import { outcomeColumns, runColumns, type StoredRun } from "../db/jobs/runs.ts";
import { nextOccurrence, overdueSince, type Schedule, waitingSince } from "../schedule/schedule.ts";
import type { RunCounts } from "../usage/counts.ts";
import type { ProjectHealth } from "./coverage.ts";

export type JobHealth = {
  readonly kind: "export" | "rotation";
  readonly job: string;
  /** How many projects a rotation is for, if it is for many. */
  readonly projects?: number;
  readonly schedule: string;
  readonly timezone: string;
  /** Undefined while the job is paused. */
  readonly nextRun: Date | undefined;
  readonly paused: Pause | undefined;
  /** The job is not paused, and a worker has planned it or a person has resumed it. */
  readonly needsWorker: boolean;
  /** The time of a scheduled run that a tick should have planned by now, and did not. */
  readonly overdueSince: Date | undefined;
  /** A run that may read the missing days is in progress, or begins with the next tick. */
  readonly mayReadMissing: boolean;
  readonly lastRun: LastRun | undefined;
  readonly failedRun: FailedRun | undefined;
  /** When the newest successful run ended, in seconds since 1970; null if none did. Backfills do not count. */
  readonly lastSuccess: number | null;
};

export type LastRun = Pick<StoredRun, "trigger" | "status" | "startedAt" | "finishedAt" | "error" | "suspect">;

/**
 * The newest failed or interrupted run whose failure is not over; backfills do not count. A failure is over once a later run is "ok" and each
 * project that did not succeed has succeeded since or is no longer configured. A scheduled run has all projects: if it is "ok", it ends all failures.
 */
export type FailedRun = Pick<LastRun, "status" | "trigger" | "startedAt" | "error"> & {
  /** A condition about failed or suspect slices reports this failure already. */
  readonly isExplained: boolean;
};

/** Every configured job, the exports first. */
export async function jobHealth(tx: Tx, config: Config, projects: readonly ProjectHealth[], now: Date) {
  const jobs = jobsOf(config);
  const stored = await storedJobs(tx, jobs);
  const runs = await newestRuns(tx, jobs);
  const withFailures = new Set(projects.flatMap((one) => (one.failed > 0 ? `${one.source} ${one.projectId}` : [])));
  return jobs.map((job, i): JobHealth => {
    const { last, failed, success } = runs[i] ?? {};
    const { kind, name, schedule, timezone } = job;
    const hasFailedSlices = kind === "export" && job.projects.some(({ id }) => withFailures.has(`${job.source} ${id}`));
    return {
      kind,
      job: name,
      schedule,
      timezone,
      ...(kind === "rotation" && job.isForMany && { projects: job.rotations.length }),
      ...scheduleHealth(job, stored[i], last, now),
      lastRun: last,
      failedRun: failed && failedRun(failed, hasFailedSlices),
      lastSuccess: success?.finishedAt ? success.finishedAt.getTime() / 1000 : null,
    };
  });
}

/** Until a run takes longer than this, no notification about missing days is sent, because the run may still read them. */
const READING_MS_MAX = 2 * 60 * 60_000;

function scheduleHealth(job: Schedule, stored: StoredJob | undefined, last: LastRun | undefined, now: Date) {
  const isPaused = stored?.pause !== undefined;
  const isRunning = last?.status === "running";
  const overdue = overdueSince(job, stored, now);
  const isAboutToBegin = waitingSince(job, stored, now) !== undefined && !overdue;
  return {
    nextRun: isPaused ? undefined : nextOccurrence(job, now),
    paused: stored?.pause,
    needsWorker: stored !== undefined && !isPaused,
    // A run that waits for the end of the previous run is not overdue.
    overdueSince: isRunning ? undefined : overdue,
    mayReadMissing: isAboutToBegin || (isRunning && Number(now) - Number(last.startedAt) < READING_MS_MAX),
  };
}

function failedRun({ status, trigger, startedAt, error, suspect }: LastRun, hasFailedSlices: boolean): FailedRun {
  return { status, trigger, startedAt, error, isExplained: hasFailedSlices || (suspect > 0 && error === null) };
}

/** The runs of `lastRun`, `failedRun` and `lastSuccess` in JobHealth. */
type NewestRuns = { [What in "last" | "failed" | "success"]?: LastRun };

/** Only the newest failed runs are read: a job that fails every night and is caught up every day has very many. */
const FAILED_RUNS_READ_MAX = 5;

/** The start of the newest run that ended well and meets `condition`, of the job `c` in `newestRuns`; '-infinity' if there is none. */
function newestOkStart(condition: RawBuilder<unknown>) {
  return sql`coalesce((
    select max(started_at) from usage_export.run where kind = c.kind and job = c.name and status = 'ok' ${condition}
  ), '-infinity')`;
}

/** The condition that a row of run_project is about a project that succeeded. */
const endedWell = sql`finished_at is not null and error is null and slices_failed + slices_suspect = 0`;

type FoundRun = LastRun & {
  readonly index: number;
  readonly what: keyof NewestRuns;
  /** If a later run is "ok": the projects that have succeeded neither in this run nor in a later one. Else null. */
  readonly failing: readonly string[] | null;
};

/** In the order of `jobs`. Each job's runs are looked up in an index, as a job that ran for years has very many. */
async function newestRuns(tx: Tx, jobs: readonly ConfiguredJob[]): Promise<readonly NewestRuns[]> {
  const { rows } = await sql<FoundRun>`
    select c.position::integer - 1 as index, r.what, r.trigger, r.status, r.started_at as "startedAt",
      r.finished_at as "finishedAt", r.error, r.slices_suspect as suspect, r.failing
    from unnest(${jobs.map(({ kind }) => kind)}::text[], ${jobs.map(({ name }) => name)}::text[]) with ordinality as c (kind, name, position)
    cross join lateral (
      (
        select 'last' as what, *, null::text[] as failing from bi.runs
        where kind = c.kind and job = c.name order by started_at desc limit 1
      )
      union all
      select 'failed', *, case when started_at <= ${newestOkStart(sql``)} then array(
        select project_id from usage_export.run_project where run_id = r.run_id and not (${endedWell})
        except
        -- As an array: for a join Postgres would read the projects of all runs that there ever were.
        select project_id from usage_export.run_project where ${endedWell} and run_id = any(array(
          select run_id from usage_export.run where kind = c.kind and job = c.name and started_at > r.started_at
        ))
      ) end
      from (
        select * from bi.runs
        where kind = c.kind and job = c.name and status in ('failed', 'interrupted') and trigger <> 'backfill'
          and started_at > ${newestOkStart(sql`and scheduled_for is not null`)}
        order by started_at desc limit ${FAILED_RUNS_READ_MAX}
      ) r
      union all
      (
        select 'success', *, null from bi.runs
        where kind = c.kind and job = c.name and status = 'ok' and trigger <> 'backfill'
        order by started_at desc limit 1
      )
    ) r
    order by r.started_at desc
  `.execute(tx);
  const byJob = Map.groupBy(rows, ({ index }) => index);
  return jobs.map((job, i) => {
    const projects = job.kind === "rotation" ? job.rotations.map(({ project }) => project) : job.projects;
    const newest: NewestRuns = {};
    for (const { index: _, what, failing, ...run } of byJob.get(i) ?? []) {
      const isOver = failing !== null && !projects.some(({ id }) => failing.includes(id));
      if (!isOver) newest[what] ??= run;
    }
    return newest;
  });
}

export type { StoredRun };

const RUNS_READ_MAX = 100;

/** The newest first; enough to show how long each job took lately. */
export async function readRuns(db: Database): Promise<readonly StoredRun[]> {
  const query = sql<StoredRun>`select ${runColumns} from bi.runs order by started_at desc, job, run_id limit ${RUNS_READ_MAX}`;
  return (await readAtOneMoment(db, (tx) => query.execute(tx), BRIEF_SECONDS)).rows;
}

type ProjectOfRun = RunCounts &
  Pick<StoredRun, "finishedAt" | "error"> & {
    readonly project: string;
    readonly outcome: "failed" | "open" | "ok";
  };

export type RunDetails = NonNullable<Awaited<ReturnType<typeof readRun>>>;

export function readRun(db: Database, runId: string) {
  return readAtOneMoment(db, (tx) => runDetails(tx, runId), BRIEF_SECONDS);
}

const PROJECTS_MAX = 100;

/** `projectCount` counts all projects of the run. `projects` has failed ones first, then those that are not done yet; at most PROJECTS_MAX. */
async function runDetails(tx: Tx, runId: string) {
  const found = await sql<StoredRun>`select ${runColumns} from bi.runs where run_id::text = ${runId}`.execute(tx);
  const [run] = found.rows;
  if (!run) return undefined;
  const { rows } = await sql<ProjectOfRun & { readonly projectCount: number }>`
    select project, outcome, ${outcomeColumns}, (count(*) over ())::integer as "projectCount"
    from (
      select p.*, coalesce(named.project, p.project_id) as project,
        case when finished_at is null then 'open' when ${endedWell} then 'ok' else 'failed' end as outcome
      from usage_export.run_project p
      left join (select project_id, min(project) as project from usage_export.series group by project_id) named using (project_id)
      where run_id = ${run.runId}::uuid
    ) p
    order by array_position(array['failed', 'open', 'ok'], outcome), finished_at desc, project collate "C"
    limit ${PROJECTS_MAX}
  `.execute(tx);
  return { run, projectCount: rows[0]?.projectCount ?? 0, projects: rows.map(({ projectCount: _, ...one }) => one) };
}
