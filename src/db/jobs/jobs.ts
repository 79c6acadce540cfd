// The rows of jobs: the scheduled time up to which a job's runs were started, and who paused the job.

import { type RawBuilder, sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { execute, type Tx } from "../connection/transaction.ts";
import { storableText } from "../storable-text.ts";

export type JobId = { readonly kind: "export" | "rotation"; readonly name: string };

export type Pause = { readonly at: Date; readonly why: string; readonly by: string };

export type StoredJob = JobId & {
  /** The newest scheduled time for which a run was started or skipped. */
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
