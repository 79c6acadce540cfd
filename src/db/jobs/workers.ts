// The rows of workers: when each was last seen.

import { sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { execute, type Tx } from "../connection/transaction.ts";
import { storableText } from "../storable-text.ts";

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
