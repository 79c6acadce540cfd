// Reads and writes the rows of jobs and workers: how far a job's schedule was followed, who paused it, and when a worker was last seen.

import { type Selectable, sql, type UpdateObject } from "kysely";
import { storableText } from "../../text.ts";
import type { Database } from "../connection/database.ts";
import { execute, inTransaction, type Tx } from "../connection/transaction.ts";
import type { Tables } from "../schema.ts";

/** Each kind has a queue. */
export const JOB_KINDS = ["export", "rotation"] as const;

/** The schema that pg-boss manages. */
export const QUEUE_SCHEMA = "usage_export_queue";

export type JobId = { readonly kind: (typeof JOB_KINDS)[number]; readonly name: string };

export type Pause = { readonly at: Date; readonly why: string; readonly by: string };

export type StoredJob = JobId & {
  /** The newest scheduled time for which a run was started. */
  readonly scheduledThrough: Date | undefined;
  readonly pause: Pause | undefined;
  readonly resumedAt: Date | undefined;
  /** When a worker first planned the job, or a person paused or resumed it, whichever came first. */
  readonly createdAt: Date;
};

/** Creates the job's row if there is none, and locks it: until the transaction ends, no other process plans the job. */
export async function lockJob(tx: Tx, { kind, name }: JobId): Promise<StoredJob> {
  await sql`insert into usage_export.job (kind, name) values (${kind}, ${name}) on conflict do nothing`.execute(tx);
  const query = tx.selectFrom("usage_export.job").selectAll().where("kind", "=", kind).where("name", "=", name);
  return toJob(await query.forUpdate().executeTakeFirstOrThrow());
}

export async function storedJobs(db: Database, jobs: readonly JobId[]): Promise<readonly (StoredJob | undefined)[]> {
  const rows = await db.selectFrom("usage_export.job").selectAll().execute();
  const byName = new Map(rows.map((row) => [`${row.kind} ${row.name}`, toJob(row)]));
  return jobs.map(({ kind, name }) => byName.get(`${kind} ${name}`));
}

export async function markScheduled(tx: Tx, job: JobId, through: Date): Promise<void> {
  await updateJob(tx, job).set({ scheduled_through: through }).execute();
}

function updateJob(db: Database, { kind, name }: JobId) {
  return db.updateTable("usage_export.job").where("kind", "=", kind).where("name", "=", name);
}

/** If the job is paused already, the start of its pause stays: numbers may be missing since then. */
export async function pauseJob(db: Database, job: JobId, { why, by }: Omit<Pause, "at">): Promise<StoredJob> {
  return changeJob(db, job, {
    paused_at: sql<Date>`coalesce(paused_at, now())`,
    paused_why: storableText(why),
    paused_by: storableText(by),
  });
}

export async function resumeJob(db: Database, job: JobId): Promise<StoredJob> {
  return changeJob(db, job, {
    paused_at: null,
    paused_why: null,
    paused_by: null,
    resumed_at: sql<Date>`case when paused_at is null then resumed_at else now() end`,
  });
}

async function changeJob(db: Database, job: JobId, changes: UpdateObject<Tables, "usage_export.job">) {
  return inTransaction(db, async (tx) => {
    await lockJob(tx, job);
    return toJob(await updateJob(tx, job).set(changes).returningAll().executeTakeFirstOrThrow());
  });
}

function toJob(row: Selectable<Tables["usage_export.job"]>): StoredJob {
  const { kind, name, paused_at: at } = row;
  return {
    kind,
    name,
    createdAt: row.created_at,
    scheduledThrough: row.scheduled_through ?? undefined,
    resumedAt: row.resumed_at ?? undefined,
    pause: at ? { at, why: row.paused_why ?? "", by: row.paused_by ?? "" } : undefined,
  };
}

type WorkerProcess = { readonly host: string; readonly pid: number; readonly version: string };
export type WorkerIdentity = WorkerProcess & { readonly workerId: string };

/** Why a worker does not use the newest version of its configuration. */
export type ConfigRefusal = { readonly reason: string; readonly at: Date };

export type StoredWorker = WorkerProcess & {
  readonly startedAt: Date;
  readonly lastSeenAt: Date;
  /** "silent": the worker was not stopped, but it is no longer seen. */
  readonly state: "live" | "silent" | "stopped";
  /** Whether the worker was seen in the last two minutes, even if it has stopped. It ticks every 10 s, and a tick may wait for a busy database. */
  readonly recent: boolean;
  readonly refusal: ConfigRefusal | undefined;
};

/** Renews the worker's heartbeat. Creates its row if it is missing: at first, and for example after a restore. */
export async function heartbeatWorker(db: Database, worker: WorkerIdentity, refusal?: ConfigRefusal): Promise<void> {
  const { workerId, host, pid, version } = worker;
  const reason = refusal ? storableText(refusal.reason) : null;
  const heartbeat = sql`
    insert into usage_export.worker (worker_id, host, pid, version, last_seen_at, config_refused, config_refused_at)
    values (${workerId}, ${storableText(host)}, ${pid}, ${version}, clock_timestamp(), ${reason}, ${refusal?.at ?? null})
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

/** A time in the future was stored before the clock was set back. It does not prove that the worker is alive. */
const IS_RECENT = sql`last_seen_at between clock_timestamp() - interval '2 minutes' and clock_timestamp() + interval '30 seconds'`;

/** More workers are not read. One that fails and is restarted every few seconds leaves many rows. */
const WORKERS_MAX = 100;

/** The workers, the most recently seen first. */
export async function storedWorkers(db: Database): Promise<readonly StoredWorker[]> {
  type WorkerRow = Omit<StoredWorker, "refusal"> & { readonly reason: string | null; readonly at: Date | null };
  const { rows } = await sql<WorkerRow>`
    select host, pid, version, started_at as "startedAt", last_seen_at as "lastSeenAt", config_refused as reason, config_refused_at as at,
      case when stopped_at is not null then 'stopped' when ${IS_RECENT} then 'live' else 'silent' end as state, ${IS_RECENT} as recent
    from usage_export.worker order by last_seen_at desc, worker_id limit ${WORKERS_MAX}
  `.execute(db);
  return rows.map(({ reason, at, ...worker }) => ({
    ...worker,
    refusal: reason !== null && at !== null ? { reason, at } : undefined,
  }));
}
