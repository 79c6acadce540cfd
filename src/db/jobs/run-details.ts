// Reads one run: how it ended, the requests that are still open, and what of the stored slices it read.

import { sql } from "kysely";
import type { Day } from "../../usage/days.ts";
import type { SeriesName } from "../../usage/series.ts";
import type { Database } from "../connection/database.ts";
import { installationOf } from "../connection/handle.ts";
import { type RecentRun, recentRunColumns } from "./recent-runs.ts";

export type RunDetails = {
  readonly run: RecentRun;
  /** Requests that have no outcome yet, in the order in which they are made; at most 200. */
  readonly open: readonly OpenRunRequest[];
  readonly openLeftOut: number;
  /** The series of which slices were read or refused while it ran, those with failures first; at most 200. */
  readonly series: readonly RunSeries[];
  readonly seriesLeftOut: number;
};

type OpenRunRequest = SeriesName & {
  readonly from: Day | null;
  readonly to: Day | null;
  /** Why its last attempt failed; null before that. */
  readonly error: string | null;
};

type RunSeries = SeriesName & {
  /** Slices whose newest reading, and whose newest failure, is of the time of the run. */
  readonly read: number;
  readonly failed: number;
  readonly from: Day;
  readonly to: Day;
  /** Why the newest of the failed ones failed. */
  readonly error: string | null;
};

const ROWS_MAX = 200;

/** Undefined if there is no such run. A slice keeps the time of its newest reading alone, so an old run has few slices left. */
export async function readRunDetails(db: Database, runId: string): Promise<RunDetails | undefined> {
  const { rows: runs } = await sql<RecentRun>`
    select ${recentRunColumns} from bi.runs where installation = ${installationOf(db)} and run_id::text = ${runId}
  `.execute(db);
  const [run] = runs;
  if (!run) return undefined;
  const { rows: open } = await sql<OpenRunRequest & { readonly count: number }>`
    select s.project, s.source, s."grouping", s.filter, r.request->'window'->>'start' as "from",
      r.request->'window'->>'end' as "to", r.error, (count(*) over ())::integer as count
    from usage_export.queued_request r
    join usage_export.series s on s.series_id = (r.request->>'seriesId')::integer
    where r.run_id::text = ${runId} order by r.chunk_id, r.position limit ${ROWS_MAX}
  `.execute(db);
  const { rows: series } = await sql<RunSeries & { readonly count: number }>`
    with of_run as (
      select series_id, usage_date, status = 'failed' and attempted_at between ${run.startedAt} and ${run.finishedAt ?? new Date()} as is_failed,
        fetched_at between ${run.startedAt} and ${run.finishedAt ?? new Date()} as is_read, error, attempted_at
      from usage_export.slice
      where greatest(fetched_at, attempted_at) >= ${run.startedAt}
    )
    select s.project, s.source, s."grouping", s.filter, count(*) filter (where is_read and not is_failed)::integer as read,
      count(*) filter (where is_failed)::integer as failed, min(usage_date) as "from", max(usage_date) as "to",
      (array_agg(o.error order by attempted_at desc) filter (where is_failed))[1] as error,
      (count(*) over ())::integer as count
    from of_run o join usage_export.series s using (series_id)
    where (is_read or is_failed) and s.superseded_at is null
    group by s.series_id
    order by count(*) filter (where is_failed) desc, s.project collate "C", s."grouping", s.filter collate "C" limit ${ROWS_MAX}
  `.execute(db);
  return {
    run,
    open,
    openLeftOut: (open[0]?.count ?? 0) - open.length,
    series,
    seriesLeftOut: (series[0]?.count ?? 0) - series.length,
  };
}
