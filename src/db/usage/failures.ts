// Records why slices could not be read, and finds the causes of all failed slices.

import { sql } from "kysely";
import { storableText } from "../../text.ts";
import type { Day } from "../../usage/days.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { lockSlices } from "./stored-slices.ts";

export type SliceFailure = {
  readonly seriesId: number;
  readonly days: readonly Day[];
  /** The number of the failed fetch: a slice that a later fetch has answered is not changed. */
  readonly fetchNo: number;
  readonly reason: string;
  /** Left out if unknown, for example when a process ended: a slice that had failed before keeps its code. */
  readonly code?: string | undefined;
};

/** Marks the slices as failed. Their last good rows stay. */
export async function recordFailure(db: Database, { seriesId, days, fetchNo, reason, code }: SliceFailure) {
  const slices = days.map((day) => ({ seriesId, day }));
  await inTransaction(db, async (tx) => {
    await lockSlices(tx, slices);
    // lockSlices inserts a missing slice as failed, but without `failing_since`.
    await sql`
      update usage_export.slice set status = 'failed', error = ${storableText(reason)}, attempted_at = now(),
        error_code = coalesce(${code ?? null}, case when status = 'failed' then error_code end),
        failing_since = coalesce(case when status = 'failed' then failing_since end, now())
      where series_id = ${seriesId} and usage_date = any(${days}::text[]::date[])
        and greatest(fetch_no, suspect_fetch_no) < ${fetchNo}
    `.execute(tx);
  });
}

/** For series without a window: deletes the failures of unanswered days after `after`. They have a run's day, which perhaps no answer will name. */
export async function deleteUndatedFailures(tx: Tx, seriesIds: readonly number[], after?: Day): Promise<void> {
  await sql`
    delete from usage_export.slice
    where series_id = any(${seriesIds}::integer[]) and status = 'failed' and fetch_no = 0
      and usage_date > coalesce(${after ?? null}::date, '-infinity')
  `.execute(tx);
}

export type FailureCause = {
  /** The error's code; null if only its text is known. */
  readonly code: string | null;
  /** The project whose key is refused; null if the cause does not belong to one project. */
  readonly project: string | null;
  /** Whether the service refuses the project's key for billing (403). The key may still be allowed to read usage. */
  readonly isBillingRefused: boolean;
  /** When the slice that has failed longest began to fail. */
  readonly since: Date;
  readonly slices: number;
  /** Slices that still show the numbers of an earlier reading. */
  readonly slicesWithNumbers: number;
  readonly days: number;
  readonly projects: number;
  /** Whether a worker tries again by itself: a short outage within minutes, another failure within a day. */
  readonly isRetried: boolean;
  /** The newest error text, preferably one that quotes an answer of the service. */
  readonly error: string;
};

/** Causes of failed slices, the largest first. All outages are one, all rate limits one, each refused key one (two with billing), others by text. */
export async function failureCauses(tx: Tx): Promise<readonly FailureCause[]> {
  const { rows } = await sql<FailureCause>`
    select code, project, "isBillingRefused", min(coalesce(failing_since, attempted_at)) as since, count(*)::integer as slices,
      count(fetched_at)::integer as "slicesWithNumbers", count(distinct usage_date)::integer as days,
      count(distinct project_id)::integer as projects, bool_or(is_retried) as "isRetried",
      coalesce((array_agg(error order by error like '%the service answered%' desc, attempted_at desc))[1], '') as error
    from (
      select sl.*, s.project_id, sl.error_code as code, case when sl.error_code = 'unauthorized' then s.project end as project,
        s.source = 'billing' and coalesce(sl.error_code = 'unauthorized' and sl.error like '%the service answered 403%', false)
          as "isBillingRefused",
        case when sl.error_code in ('unavailable', 'rate_limited', 'unauthorized') then null
          -- The request id differs in every text.
          else regexp_replace(sl.error, ' \\(request id [^)]*\\)', '') end as error_text,
        d.series_id is not null as is_retried
      from usage_export.slice sl
      join usage_export.series s using (series_id)
      -- Without a window no single day can be requested, so no worker retries it.
      left join usage_export.due_series d
        on d.series_id = sl.series_id and d.window_days is not null and sl.usage_date between d.due_from and d.due_until
      where sl.status = 'failed' and s.superseded_at is null and s.retired_at is null
    ) failed
    group by code, project, "isBillingRefused", error_text
    order by slices desc
  `.execute(tx);
  return rows;
}
