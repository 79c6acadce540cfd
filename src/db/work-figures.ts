// Reads how the jobs do, and what waits in the queue.

import { sql } from "kysely";
import { type Figure, figure } from "./figure.ts";
import type { JobId } from "./jobs.ts";
import { queueDepths } from "./queue-depth.ts";
import type { Tx } from "./transaction.ts";

/** A configured job. */
export type MonitoredJob = JobId & {
  /** When it runs next, of the moments of its schedule after this one. */
  readonly nextAfter: (moment: Date) => Date | undefined;
};

type JobRow = {
  readonly kind: MonitoredJob["kind"];
  readonly name: string;
  readonly lastSuccess: number | null;
  readonly failures: number;
  readonly paused: boolean;
  readonly scheduledThrough: Date | null;
};

/** A backfill says nothing of the job: a person chose its days. */
export async function jobFigures(tx: Tx, jobs: readonly MonitoredJob[]): Promise<readonly Figure[]> {
  const { rows } = await sql<JobRow>`
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
      ...figure("job_last_success_timestamp_seconds", labels, lastSuccess),
      ...figure("job_failures", labels, failures),
      ...figure("job_paused", labels, paused ? 1 : 0),
      ...figure("job_next_run_timestamp_seconds", labels, next && next.getTime() / 1000),
    ];
  });
}

export async function queueFigures(tx: Tx): Promise<readonly Figure[]> {
  const depths = await queueDepths(tx);
  return depths.map(({ queue, state, jobs }) => ({ gauge: "queue_jobs", labels: { queue, state }, value: jobs }));
}
