// Reads how jobs ended last.

import { sql } from "kysely";
import type { JobId } from "./jobs.ts";
import type { Tx } from "./transaction.ts";

export type LastOutcome = {
  readonly status: "ok" | "failed";
  readonly trigger: string;
  readonly startedAt: Date;
  readonly planned: number;
  readonly suspect: number;
  readonly failed: number;
  readonly error: string | null;
};

export type AskedJob = JobId & {
  /** None of its slices is failed. */
  readonly whole: boolean;
};

/**
 * The newest run of each job that ended well or failed. A skipped or stopped run says nothing about the job. Nor does a failed
 * backfill: a person chose its days.
 *
 * A backfill, or a run that only filled gaps, counts only if it filled every gap. A day that the service always refuses is
 * requested again whenever its rest is over; if those runs counted, the job would alternate between failed and ok every night.
 */
export async function lastOutcomes(
  tx: Tx,
  jobs: readonly AskedJob[],
): Promise<readonly (JobId & { readonly last: LastOutcome | undefined })[]> {
  const { rows } = await sql<JobId & LastOutcome>`
    select c.kind, c.name, r.status, r.trigger, r.started_at as "startedAt", r.slices_planned as planned,
      r.slices_suspect as suspect, r.slices_failed as failed, r.error
    from unnest(
      ${jobs.map(({ kind }) => kind)}::text[], ${jobs.map(({ name }) => name)}::text[], ${jobs.map(({ whole }) => whole)}::boolean[]
    ) as c (kind, name, whole)
    cross join lateral (
      select * from usage_export.run r
      where r.kind = c.kind and r.job = c.name and r.status in ('ok', 'failed')
        and (r.trigger in ('schedule', 'manual') or r.scheduled_for is not null or (c.whole and r.status = 'ok'))
      order by r.started_at desc limit 1
    ) r
  `.execute(tx);
  const known = rows.map(({ kind, name, ...last }) => ({ kind, name, last }));
  return jobs.map(({ kind, name }) => ({
    kind,
    name,
    last: known.find((one) => one.kind === kind && one.name === name)?.last,
  }));
}
