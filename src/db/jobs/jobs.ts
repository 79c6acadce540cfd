// The rows of jobs and of workers: the scheduled time up to which runs were started, who paused a job, and when each worker was last seen.

import { type RawBuilder, sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { execute, type Tx } from "../connection/transaction.ts";
import { storableText } from "../limits.ts";

export const QUEUE_NAMES = ["export", "rotation"] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

/** The schema that pg-boss manages. */
export const QUEUE_SCHEMA = "usage_export_queue";

export type JobId = { readonly kind: "export" | "rotation"; readonly name: string };

export type Pause = { readonly at: Date; readonly why: string; readonly by: string };

export type StoredJob = JobId & {
  /** The newest scheduled time for which a run was started. */
  readonly scheduledThrough: Date | undefined;
  readonly pause: Pause | undefined;
  /** When its last pause ended. */
  readonly resumedAt: Date | undefined;
  /** When a worker, or a person who paused the job, first registered it. */
  readonly createdAt: Date;
};

/** Jobs that are registered already are left unchanged. */
export async function registerJobs(db: Database, jobs: readonly JobId[]): Promise<void> {
  const register = sql`
    insert into usage_export.job (kind, name)
    select * from unnest(${jobs.map(({ kind }) => kind)}::text[], ${jobs.map(({ name }) => name)}::text[])
    on conflict do nothing
  `;
  await execute(db, register);
}

/** Locks the job's row until the transaction ends, so that no other process plans the job. Undefined if the job is not registered. */
export async function lockJob(tx: Tx, { kind, name }: JobId): Promise<StoredJob | undefined> {
  const { rows } = await sql<JobRow>`
    select ${columns} from usage_export.job
    where kind = ${kind} and name = ${name} for update
  `.execute(tx);
  return rows.map(toJob)[0];
}

export async function storedJobs(db: Database): Promise<readonly StoredJob[]> {
  const { rows } = await sql<JobRow>`
    select ${columns} from usage_export.job order by kind, name
  `.execute(db);
  return rows.map(toJob);
}

/**
 * Returns a function that finds the row of a job. A rotation of many projects is paused under its own name, and each of its jobs is paused
 * with it.
 */
export function storedJobFinder(
  stored: readonly StoredJob[],
): (job: JobId & { readonly group?: string }) => StoredJob | undefined {
  const byName = new Map(stored.map((one) => [`${one.kind} ${one.name}`, one]));
  return ({ kind, name, group: groupName }) => {
    const own = byName.get(`${kind} ${name}`);
    const group = groupName === undefined ? undefined : byName.get(`${kind} ${groupName}`);
    // A person may have paused it before a worker registered the job of each project.
    if (!own || !group) return own ?? group;
    const resumed = [own.resumedAt, group.resumedAt].flatMap((at) => at?.getTime() ?? []);
    return {
      ...own,
      pause: own.pause ?? group.pause,
      resumedAt: resumed.length > 0 ? new Date(Math.max(...resumed)) : undefined,
    };
  };
}

export async function markScheduled(tx: Tx, { kind, name }: JobId, through: Date): Promise<void> {
  await sql`
    update usage_export.job set scheduled_through = ${through}
    where kind = ${kind} and name = ${name}
  `.execute(tx);
}

/** If the job is paused already, the start of its pause stays: numbers may be missing since then. */
export async function pauseJob(db: Database, job: JobId, { why, by }: Omit<Pause, "at">): Promise<StoredJob> {
  return changeJob(
    db,
    job,
    sql`paused_at = coalesce(paused_at, now()), paused_why = ${storableText(why)}, paused_by = ${storableText(by)}`,
  );
}

export async function resumeJob(db: Database, job: JobId): Promise<StoredJob> {
  return changeJob(
    db,
    job,
    sql`
      paused_at = null, paused_why = null, paused_by = null,
      resumed_at = case when paused_at is null then resumed_at else now() end
    `,
  );
}

async function changeJob(db: Database, job: JobId, changes: RawBuilder<unknown>): Promise<StoredJob> {
  await registerJobs(db, [job]);
  const update = sql<JobRow>`
    update usage_export.job set ${changes}
    where kind = ${job.kind} and name = ${job.name} returning ${columns}
  `;
  const [row] = (await execute(db, update)).rows;
  if (!row) throw new Error(`the job ${job.name} was deleted meanwhile`);
  return toJob(row);
}

const columns = sql`
  kind, name, scheduled_through as "scheduledThrough", resumed_at as "resumedAt", created_at as "createdAt",
  paused_at as at, paused_why as why, paused_by as by
`;

type JobRow = JobId & {
  readonly scheduledThrough: Date | null;
  readonly resumedAt: Date | null;
  readonly createdAt: Date;
  readonly at: Date | null;
  readonly why: string | null;
  readonly by: string | null;
};

function toJob({ at, why, by, scheduledThrough, resumedAt, ...job }: JobRow): StoredJob {
  return {
    ...job,
    scheduledThrough: scheduledThrough ?? undefined,
    resumedAt: resumedAt ?? undefined,
    pause: at ? { at, why: why ?? "", by: by ?? "" } : undefined,
  };
}

export type NewWorker = {
  readonly workerId: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
};

/** Why a worker does not use the newest version of its configuration. */
export type ConfigRefusal = { readonly reason: string; readonly at: Date };

export type StoredWorker = NewWorker & {
  readonly startedAt: Date;
  readonly lastSeenAt: Date;
  /** Undefined while the worker runs, and if it was killed. */
  readonly stoppedAt: Date | undefined;
  /** Whether it was seen in the last two minutes, the time of two ticks. */
  readonly recent: boolean;
  /** Undefined while the worker uses the newest version of its configuration. */
  readonly refusal: ConfigRefusal | undefined;
};

/** When a worker starts, it deletes the rows of workers that were last seen longer ago than this. */
const KEEP_DAYS = 7;

/** Registers a worker, or renews its heartbeat. A worker whose row is gone, for example after a restore, is registered again. */
export async function heartbeatWorker(
  db: Database,
  { workerId, host, pid, version }: NewWorker,
  refusal?: ConfigRefusal | undefined,
): Promise<void> {
  const reason = refusal ? storableText(refusal.reason) : null;
  const upsert = sql`
    insert into usage_export.worker as w (worker_id, host, pid, version, config_refused, config_refused_at)
    values (${workerId}, ${storableText(host)}, ${pid}, ${version}, ${reason}, ${refusal?.at ?? null})
    on conflict (worker_id) do update set last_seen_at = excluded.last_seen_at, config_refused = excluded.config_refused,
      config_refused_at = excluded.config_refused_at
  `;
  await execute(db, upsert);
}

export async function deleteOldWorkers(db: Database): Promise<void> {
  await execute(
    db,
    sql`delete from usage_export.worker where last_seen_at < now() - make_interval(days => ${KEEP_DAYS})`,
  );
}

export async function markWorkerStopped(db: Database, workerId: string): Promise<void> {
  const stop = sql`
    update usage_export.worker set last_seen_at = clock_timestamp(), stopped_at = clock_timestamp()
    where worker_id = ${workerId}
  `;
  await execute(db, stop);
}

/**
 * Whether a worker was seen in the last two minutes; it ticks every minute. A time in the future was stored before the clock was set
 * back, and proves nothing.
 */
const isRecent = sql<boolean>`
  last_seen_at between clock_timestamp() - interval '2 minutes' and clock_timestamp() + interval '30 seconds'
`;

/** Limit for the rows that are read: a worker that fails and is restarted every few seconds leaves many. */
const WORKERS_MAX = 100;

/** The worker seen last comes first. */
export async function storedWorkers(tx: Database | Tx): Promise<readonly StoredWorker[]> {
  const { rows } = await sql<WorkerRow>`
    select worker_id as "workerId", host, pid, version, started_at as "startedAt", last_seen_at as "lastSeenAt",
      stopped_at as "stoppedAt", ${isRecent} as recent, config_refused as refused, config_refused_at as "refusedAt"
    from usage_export.worker order by last_seen_at desc, worker_id limit ${WORKERS_MAX}
  `.execute(tx);
  return rows.map(({ refused, refusedAt, stoppedAt, ...row }) => ({
    ...row,
    stoppedAt: stoppedAt ?? undefined,
    refusal: refused !== null && refusedAt !== null ? { reason: refused, at: refusedAt } : undefined,
  }));
}

type WorkerRow = Omit<StoredWorker, "stoppedAt" | "refusal"> & {
  readonly stoppedAt: Date | null;
  readonly refused: string | null;
  readonly refusedAt: Date | null;
};
