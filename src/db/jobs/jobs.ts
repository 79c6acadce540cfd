// The rows of jobs: how far their schedule was taken up, who paused them, and their metrics.

import { sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { type MetricSample, metricSamples, storableText } from "../schema.ts";
import { queueDepths } from "./queue.ts";

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

// Reads how the jobs do, and what waits in the queue.

/** A configured job. */
export type MonitoredJob = JobId & {
  /** When it runs next, of the moments of its schedule after this one. */
  readonly nextAfter: (moment: Date) => Date | undefined;
};

type JobMetricsRow = {
  readonly kind: MonitoredJob["kind"];
  readonly name: string;
  readonly lastSuccess: number | null;
  readonly failures: number;
  readonly paused: boolean;
  readonly scheduledThrough: Date | null;
};

/** A backfill says nothing of the job: a person chose its days. */
export async function jobMetrics(tx: Tx, jobs: readonly MonitoredJob[]): Promise<readonly MetricSample[]> {
  const { rows } = await sql<JobMetricsRow>`
    select c.kind, c.name, extract(epoch from ok.finished_at)::double precision as "lastSuccess",
      j.paused_at is not null as paused, j.scheduled_through as "scheduledThrough",
      (
        select count(*)::integer from bi.runs r
        where r.kind = c.kind and r.job = c.name and r.trigger <> 'backfill' and r.status in ('failed', 'interrupted')
          and (ok.started_at is null or r.started_at > ok.started_at)
      ) as failures
    from unnest(${jobs.map(({ kind }) => kind)}::text[], ${jobs.map(({ name }) => name)}::text[]) as c (kind, name)
    left join usage_export.job j using (kind, name)
    left join lateral (
      select started_at, finished_at from usage_export.run r
      where r.kind = c.kind and r.job = c.name and r.trigger <> 'backfill' and r.status = 'ok'
      order by started_at desc limit 1
    ) ok on true
  `.execute(tx);
  return rows.flatMap(({ kind, name, lastSuccess, failures, paused, scheduledThrough }) => {
    const labels = { kind, job_name: name };
    const job = jobs.find((one) => one.kind === kind && one.name === name);
    const next = scheduledThrough && !paused ? job?.nextAfter(scheduledThrough) : undefined;
    return [
      ...metricSamples("job_last_success_timestamp_seconds", labels, lastSuccess),
      ...metricSamples("job_failures", labels, failures),
      ...metricSamples("job_paused", labels, paused ? 1 : 0),
      ...metricSamples("job_next_run_timestamp_seconds", labels, next && next.getTime() / 1000),
    ];
  });
}

export async function queueMetrics(tx: Tx): Promise<readonly MetricSample[]> {
  const depths = await queueDepths(tx);
  return depths.map(({ queue, state, jobs }) => ({ gauge: "queue_jobs", labels: { queue, state }, value: jobs }));
}
