// Records why slices could not be read, and groups failed slices by cause.

import { sql } from "kysely";
import { storableText } from "../../text.ts";
import { RETRIED_CODES, sliceRetryDelayMs } from "../../usage/backfill.ts";
import type { Day } from "../../usage/days.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { QUEUE_SCHEMA } from "../jobs/jobs.ts";
import { lockSlices } from "./slices.ts";

export type SliceFailure = {
  readonly seriesId: number;
  readonly days: readonly Day[];
  /** The number of the failed fetch. A slice that a later fetch has answered is not changed. */
  readonly fetchNo: number;
  readonly reason: string;
  /** Left out if unknown, as after a process ended: the slice then keeps the code it has. */
  readonly code?: string | undefined;
  /** Whether the run retries the request itself. Such an attempt does not count in `failures`; only the run's last one does. */
  readonly isRetried?: boolean;
};

/** The last good rows stay as they are; only the state changes. */
export async function recordFailure(
  db: Database,
  { seriesId, days, fetchNo, reason, code, isRetried = false }: SliceFailure,
): Promise<void> {
  const text = storableText(reason);
  await inTransaction(db, async (tx) => {
    await lockSlices(
      tx,
      days.map((day) => ({ seriesId, day })),
    );
    // A row inserted only for its lock has no error yet, so its failure starts now.
    await sql`
      update usage_export.slice set status = 'failed', error = ${text}, attempted_at = now(),
        error_code = case when status = 'failed' then coalesce(${code ?? null}, error_code) else ${code ?? null} end,
        failing_since = case when status = 'failed' and error is not null then coalesce(failing_since, attempted_at) else now() end,
        failures = failures + ${isRetried ? 0 : 1}
      where series_id = ${seriesId} and usage_date = any(${days}::text[]::date[])
        and greatest(fetch_no, suspect_fetch_no) < ${fetchNo}
    `.execute(tx);
  });
}

/**
 * Deletes the failures that were recorded under the day of their run, because no answer had named the days. To be called when an answer
 * of these series has arrived, which ends the failures. If `after` is given, only failures on later days are deleted.
 */
export async function deleteUndatedFailures(tx: Tx, seriesIds: readonly number[], after?: Day): Promise<void> {
  await sql`
    delete from usage_export.slice
    where series_id = any(${seriesIds}::integer[]) and status = 'failed' and fetch_no = 0
      and usage_date > coalesce(${after ?? null}::date, '-infinity')
  `.execute(tx);
}

// Groups failed slices by cause: many failed slices usually have few causes.

export type FailureCause = {
  /** The error's code; undefined if only its text is known. */
  readonly code: string | undefined;
  /** The project whose key is refused; undefined if the cause does not belong to one project. */
  readonly project: string | undefined;
  /** Whether the service refuses the project's key for billing (403). The key may read usage all the same. */
  readonly isBillingRefused: boolean;
  /** When the slice that has failed longest began to fail. */
  readonly since: Date;
  readonly slices: number;
  /** Slices that still show the numbers of an earlier reading. */
  readonly slicesWithNumbers: number;
  readonly series: number;
  /** When a worker makes the next attempt; undefined if none will. */
  readonly nextTry: Date | undefined;
  /** The newest error text. */
  readonly error: string;
};

type FailedSlicesRow = {
  readonly code: string | null;
  readonly project: string | null;
  readonly isBillingRefused: boolean;
  readonly words: string | null;
  readonly failures: number;
  readonly caughtUp: boolean;
  readonly since: Date;
  readonly firstAttemptAt: Date;
  readonly lastAttemptAt: Date;
  readonly slices: number;
  readonly slicesWithNumbers: number;
  readonly seriesIds: readonly number[];
  readonly error: string;
};

/** Sorted by number of slices, the largest first. */
export async function failureCauses(tx: Tx, now: Date): Promise<readonly FailureCause[]> {
  const rows = await failedSlicesByCause(tx);
  if (rows.length === 0) return [];
  const queueRetry = await nextQueueRetry(tx);
  const byCause = Map.groupBy(rows, ({ code, project, isBillingRefused, words }) =>
    JSON.stringify([code, project, isBillingRefused, words]),
  );
  return [...byCause.values()]
    .map((group) => causeOf(group, RETRIED_CODES.includes(group[0]?.code ?? "") ? queueRetry : undefined, now))
    .sort((a, b) => b.slices - a.slices);
}

/**
 * The error text of an outage or of a refused key differs from request to request, so these are grouped by code. Other failures
 * are grouped by their text.
 */
async function failedSlicesByCause(tx: Tx): Promise<readonly FailedSlicesRow[]> {
  const { rows } = await sql<FailedSlicesRow>`
    select sl.error_code as code, case when sl.error_code = 'unauthorized' then s.project end as project,
      s.source = 'billing' and coalesce(sl.error_code = 'unauthorized' and sl.error like '%the service answered 403%', false)
        as "isBillingRefused",
      case when sl.error_code in ('unavailable', 'rate_limited', 'unauthorized') then null
        -- Texts are compared without the request id, which is another one for each request.
        else regexp_replace(sl.error, ' \\(request id [^)]*\\)', '') end as words,
      sl.failures, d.series_id is not null as "caughtUp", min(coalesce(sl.failing_since, sl.attempted_at)) as since,
      min(sl.attempted_at) as "firstAttemptAt", max(sl.attempted_at) as "lastAttemptAt", count(*)::integer as slices,
      count(sl.fetched_at)::integer as "slicesWithNumbers", array_agg(distinct sl.series_id) as "seriesIds",
      coalesce((array_agg(sl.error order by sl.error like '%the service answered%' desc, sl.attempted_at desc))[1], '') as error
    from usage_export.slice sl
    join usage_export.series s using (series_id)
    -- Only series with a window: without one no day can be requested again, so nothing retries it.
    left join usage_export.due_series d
      on d.series_id = sl.series_id and d.window_days is not null and sl.usage_date between d.due_from and d.due_until
    where sl.status = 'failed' and s.superseded_at is null and s.retired_at is null
    group by 1, 2, 3, 4, 5, 6
  `.execute(tx);
  return rows;
}

/** When the queue tries a project again next. */
async function nextQueueRetry(tx: Tx): Promise<Date | undefined> {
  const { rows } = await sql<{ at: Date | null }>`
    select min(start_after) as at from ${sql.id(QUEUE_SCHEMA, "job")}
    where name = ${"export"} and state::text = 'retry'
  `.execute(tx);
  return rows[0]?.at ?? undefined;
}

function causeOf(rows: readonly FailedSlicesRow[], queueRetry: Date | undefined, now: Date): FailureCause {
  const newest = rows.reduce((a, b) => (b.lastAttemptAt > a.lastAttemptAt ? b : a));
  const total = (count: (row: FailedSlicesRow) => number) => rows.reduce((sum, row) => sum + count(row), 0);
  const retryTimes = rows.flatMap((row) =>
    row.caughtUp ? [row.firstAttemptAt.getTime() + sliceRetryDelayMs(row.failures)] : [],
  );
  if (queueRetry) retryTimes.push(queueRetry.getTime());
  return {
    code: newest.code ?? undefined,
    project: newest.project ?? undefined,
    isBillingRefused: newest.isBillingRefused,
    since: new Date(Math.min(...rows.map(({ since }) => since.getTime()))),
    slices: total(({ slices }) => slices),
    slicesWithNumbers: total(({ slicesWithNumbers }) => slicesWithNumbers),
    series: new Set(rows.flatMap(({ seriesIds }) => seriesIds)).size,
    nextTry: retryTimes.length > 0 ? new Date(Math.max(Math.min(...retryTimes), now.getTime())) : undefined,
    error: newest.error,
  };
}
