// The rows of jobs: how far their schedule was taken up, and who paused them.

import { sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { storableText } from "../schema.ts";

export type JobId = { readonly kind: "export" | "rotation"; readonly name: string };

export type Pause = { readonly at: Date; readonly why: string; readonly by: string };

export type StoredJob = JobId & {
  readonly scheduledThrough: Date | undefined;
  readonly pause: Pause | undefined;
  /** When its last pause ended. */
  readonly resumedAt: Date | undefined;
  /** When a worker, or a person who paused the job, first registered it. */
  readonly createdAt: Date;
};

/** Jobs that are there stay as they are. */
export async function registerJobs(db: Database, jobs: readonly JobId[]): Promise<void> {
  await inTransaction(db, (tx) =>
    sql`
      insert into usage_export.job (kind, name)
      select * from unnest(${jobs.map(({ kind }) => kind)}::text[], ${jobs.map(({ name }) => name)}::text[])
      on conflict do nothing
    `.execute(tx),
  );
}

/** Nobody else decides about the job before the transaction ends. */
export async function lockJob(tx: Tx, { kind, name }: JobId): Promise<StoredJob | undefined> {
  const row = await tx
    .selectFrom("usage_export.job")
    .selectAll()
    .where("kind", "=", kind)
    .where("name", "=", name)
    .forUpdate()
    .executeTakeFirst();
  return row && toJob(row);
}

export async function storedJobs(db: Database): Promise<readonly StoredJob[]> {
  const rows = await db.selectFrom("usage_export.job").selectAll().orderBy("kind").orderBy("name").execute();
  return rows.map(toJob);
}

export async function markScheduled(tx: Tx, { kind, name }: JobId, through: Date): Promise<void> {
  await tx
    .updateTable("usage_export.job")
    .set({ scheduled_through: through })
    .where("kind", "=", kind)
    .where("name", "=", name)
    .execute();
}

/** A job that is paused already keeps its first pause: it says since when numbers may be missing. */
export async function pauseJob(db: Database, job: JobId, { why, by }: Omit<Pause, "at">): Promise<StoredJob> {
  return changeJob(db, job, {
    paused_at: sql<Date>`coalesce(paused_at, now())`,
    paused_why: storableText(why),
    paused_by: storableText(by),
  });
}

export async function resumeJob(db: Database, job: JobId): Promise<StoredJob> {
  const resumedAt = sql<Date>`case when paused_at is null then resumed_at else now() end`;
  return changeJob(db, job, { paused_at: null, paused_why: null, paused_by: null, resumed_at: resumedAt });
}

type PauseColumns = {
  readonly paused_at: ReturnType<typeof sql<Date>> | null;
  readonly paused_why: string | null;
  readonly paused_by: string | null;
  readonly resumed_at?: ReturnType<typeof sql<Date>>;
};

async function changeJob(db: Database, job: JobId, pause: PauseColumns): Promise<StoredJob> {
  await registerJobs(db, [job]);
  const row = await inTransaction(db, (tx) =>
    tx
      .updateTable("usage_export.job")
      .set(pause)
      .where("kind", "=", job.kind)
      .where("name", "=", job.name)
      .returningAll()
      .executeTakeFirstOrThrow(),
  );
  return toJob(row);
}

type JobRow = JobId & {
  readonly scheduled_through: Date | null;
  readonly paused_at: Date | null;
  readonly paused_why: string | null;
  readonly paused_by: string | null;
  readonly resumed_at: Date | null;
  readonly created_at: Date;
};

function toJob(row: JobRow): StoredJob {
  const { kind, name, scheduled_through, paused_at, paused_why, paused_by, resumed_at, created_at } = row;
  const pause = paused_at && { at: paused_at, why: paused_why ?? "", by: paused_by ?? "" };
  return {
    ...{ kind, name, createdAt: created_at },
    scheduledThrough: scheduled_through ?? undefined,
    pause: pause ?? undefined,
    resumedAt: resumed_at ?? undefined,
  };
}
