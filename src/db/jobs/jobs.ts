// The rows of jobs and of workers: which runs were planned, who paused a job, and when each worker was last seen.

import { type RawBuilder, sql } from "kysely";
import { storableText } from "../../text.ts";
import type { Database } from "../connection/database.ts";
import { execute, inTransaction, onlyRow, type Tx } from "../connection/transaction.ts";

/** Each kind has a queue. */
export const JOB_KINDS = ["export", "rotation"] as const;

/** The schema that pg-boss manages. */
export const QUEUE_SCHEMA = "usage_export_queue";

export type JobId = { readonly kind: (typeof JOB_KINDS)[number]; readonly name: string };

export type Pause = { readonly at: Date; readonly why: string; readonly by: string };

export type StoredJob = JobId & {
  /** The newest scheduled time for which a run was started. */
  readonly scheduledThrough: Date | null;
  readonly pause: Pause | undefined;
  readonly resumedAt: Date | null;
  /** When a worker first planned the job, or a person paused it. */
  readonly createdAt: Date;
};

type JobRow = Omit<StoredJob, "pause"> & { readonly [Part in keyof Pause]: Pause[Part] | null };

const jobColumns = sql`
  kind, name, scheduled_through as "scheduledThrough", resumed_at as "resumedAt", created_at as "createdAt", paused_at as at,
  paused_why as why, paused_by as by
`;

function toJob({ at, why, by, ...job }: JobRow): StoredJob {
  return { ...job, pause: at && why !== null && by !== null ? { at, why, by } : undefined };
}

/** Locks the job's row until the transaction ends, so that no other process plans the job. The row is made if there is none. */
export async function lockJob(tx: Tx, { kind, name }: JobId): Promise<StoredJob> {
  await sql`insert into usage_export.job (kind, name) values (${kind}, ${name}) on conflict do nothing`.execute(tx);
  const lock = sql<JobRow>`select ${jobColumns} from usage_export.job where kind = ${kind} and name = ${name} for update`;
  return toJob(await onlyRow(tx, lock));
}

export async function storedJobs(db: Database, jobs: readonly JobId[]): Promise<readonly (StoredJob | undefined)[]> {
  const { rows } = await sql<JobRow>`select ${jobColumns} from usage_export.job`.execute(db);
  const byName = new Map(rows.map((row) => [`${row.kind} ${row.name}`, toJob(row)]));
  return jobs.map(({ kind, name }) => byName.get(`${kind} ${name}`));
}

export async function markScheduled(tx: Tx, { kind, name }: JobId, through: Date): Promise<void> {
  await sql`
    update usage_export.job set scheduled_through = ${through} where kind = ${kind} and name = ${name}
  `.execute(tx);
}

/** If the job is paused already, the start of its pause stays: numbers may be missing since then. */
export async function pauseJob(db: Database, { kind, name }: JobId, { why, by }: Omit<Pause, "at">) {
  return changeJob(
    db,
    sql`
      insert into usage_export.job as j (kind, name, paused_at, paused_why, paused_by)
      values (${kind}, ${name}, now(), ${storableText(why)}, ${storableText(by)})
      on conflict (kind, name) do update
      set paused_at = coalesce(j.paused_at, excluded.paused_at), paused_why = excluded.paused_why, paused_by = excluded.paused_by
    `,
  );
}

export async function resumeJob(db: Database, { kind, name }: JobId): Promise<StoredJob> {
  return changeJob(
    db,
    sql`
      insert into usage_export.job as j (kind, name) values (${kind}, ${name})
      on conflict (kind, name) do update set paused_at = null, paused_why = null, paused_by = null,
        resumed_at = case when j.paused_at is null then j.resumed_at else now() end
    `,
  );
}

async function changeJob(db: Database, change: RawBuilder<unknown>): Promise<StoredJob> {
  return inTransaction(db, async (tx) => toJob(await onlyRow(tx, sql<JobRow>`${change} returning ${jobColumns}`)));
}

export type NewWorker = {
  readonly workerId: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
};

/** Why a worker does not use the newest version of its configuration. */
export type ConfigRefusal = { readonly reason: string; readonly at: Date };

export type StoredWorker = Omit<NewWorker, "workerId"> & {
  readonly startedAt: Date;
  readonly lastSeenAt: Date;
  /** "silent": the worker was not told to stop, but is no longer seen. */
  readonly state: "live" | "silent" | "stopped";
  /** Whether it was seen in the last two minutes. It ticks every 10 s, and a tick may wait for a busy database. */
  readonly recent: boolean;
  /** Undefined while the worker uses the newest version of its configuration. */
  readonly refusal: ConfigRefusal | undefined;
};

/** Registers a worker, or renews its heartbeat. A worker whose row is gone, for example after a restore, is registered again. */
export async function heartbeatWorker(db: Database, worker: NewWorker, refusal?: ConfigRefusal): Promise<void> {
  const reason = refusal ? storableText(refusal.reason) : null;
  const heartbeat = sql`
    insert into usage_export.worker (worker_id, host, pid, version, last_seen_at, config_refused, config_refused_at)
    values (
      ${worker.workerId}, ${storableText(worker.host)}, ${worker.pid}, ${worker.version}, clock_timestamp(), ${reason}, ${refusal?.at ?? null}
    )
    on conflict (worker_id) do update
    set last_seen_at = excluded.last_seen_at, config_refused = excluded.config_refused, config_refused_at = excluded.config_refused_at
  `;
  await execute(db, heartbeat);
}

export async function markWorkerStopped(db: Database, workerId: string): Promise<void> {
  const stop = sql`
    update usage_export.worker set last_seen_at = clock_timestamp(), stopped_at = clock_timestamp() where worker_id = ${workerId}
  `;
  await execute(db, stop);
}

/** A time in the future was stored before the clock was set back, and proves nothing. */
const IS_RECENT = sql`last_seen_at between clock_timestamp() - interval '2 minutes' and clock_timestamp() + interval '30 seconds'`;

/** A worker that fails and is restarted every few seconds leaves many rows. */
const WORKERS_MAX = 100;

/** The worker seen last comes first. */
export async function storedWorkers(tx: Database): Promise<readonly StoredWorker[]> {
  type Row = Omit<StoredWorker, "refusal"> & { readonly reason: string | null; readonly at: Date | null };
  const { rows } = await sql<Row>`
    select host, pid, version, started_at as "startedAt", last_seen_at as "lastSeenAt", config_refused as reason, config_refused_at as at,
      case when stopped_at is not null then 'stopped' when ${IS_RECENT} then 'live' else 'silent' end as state, ${IS_RECENT} as recent
    from usage_export.worker order by last_seen_at desc, worker_id limit ${WORKERS_MAX}
  `.execute(tx);
  return rows.map(({ reason, at, ...worker }) => ({
    ...worker,
    refusal: reason !== null && at !== null ? { reason, at } : undefined,
  }));
}
