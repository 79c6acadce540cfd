// Reads the newest runs of all jobs or of one, and one run: how it ended, its requests, and those that are still open.

import { sql } from "kysely";
import type { Day } from "../../usage/days.ts";
import type { RunCounts } from "../../usage/export.ts";
import type { SeriesName } from "../../usage/series.ts";
import type { Database } from "../connection/database.ts";
import { type RequestFilter, type RunRequests, readRequests } from "./run-requests.ts";

export type RecentRun = RunCounts & {
  readonly runId: string;
  readonly job: string;
  readonly kind: string;
  readonly trigger: string;
  readonly status: string;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  /** The first error of the run. */
  readonly error: string | null;
};

/** Of bi.runs. */
const recentRunColumns = sql`
  run_id as "runId", job, kind, trigger, status, started_at as "startedAt", finished_at as "finishedAt", error, requests,
  slices_planned as planned, slices_complete as complete, slices_suspect as suspect, slices_failed as failed,
  slices_undated as undated, slices_stale as stale, rows_changed::double precision as "rowsChanged"
`;

/** Of bi.runs. */
export const RUN_STATUSES = ["running", "ok", "failed", "stopped", "skipped", "interrupted"] as const;

export type RunFilter = {
  /** Of a rotation of many projects the name selects the runs of all of them. */
  readonly job: string | undefined;
  readonly status: (typeof RUN_STATUSES)[number] | undefined;
  /** From 1. */
  readonly page: number;
};

export type RunList = {
  /** The newest first. */
  readonly runs: readonly RecentRun[];
  /** There are older ones. */
  readonly hasMore: boolean;
};

const RUNS_PER_PAGE = 50;

export async function recentRuns(db: Database, { job, status, page }: RunFilter): Promise<RunList> {
  const { rows } = await sql<RecentRun>`
    select ${recentRunColumns} from bi.runs
      ${job === undefined ? sql`` : sql`and (job = ${job} or starts_with(job, ${`${job}/`}))`}
      ${status === undefined ? sql`` : sql`and status = ${status}`}
    order by started_at desc, run_id limit ${RUNS_PER_PAGE + 1} offset ${(page - 1) * RUNS_PER_PAGE}
  `.execute(db);
  return { runs: rows.slice(0, RUNS_PER_PAGE), hasMore: rows.length > RUNS_PER_PAGE };
}

export type RunDetails = {
  readonly run: RecentRun;
  /** Requests that have no outcome yet, in the order in which they are made; at most 200. */
  readonly open: readonly OpenRunRequest[];
  readonly openLeftOut: number;
  readonly requests: RunRequests;
};

type OpenRunRequest = SeriesName & {
  readonly from: Day | null;
  readonly to: Day | null;
  /** Why its last attempt failed; null before that. */
  readonly error: string | null;
};

const ROWS_MAX = 200;

/** Undefined if there is no such run. */
export async function readRunDetails(
  db: Database,
  runId: string,
  filter: RequestFilter,
): Promise<RunDetails | undefined> {
  const { rows: runs } = await sql<RecentRun>`
    select ${recentRunColumns} from bi.runs where run_id::text = ${runId}
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
  return {
    run,
    open,
    openLeftOut: (open[0]?.count ?? 0) - open.length,
    requests: await readRequests(db, run.runId, filter),
  };
}
