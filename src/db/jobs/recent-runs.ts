// Reads the newest runs of all jobs or of one.

import { sql } from "kysely";
import type { RunCounts } from "../../usage/export.ts";
import type { Database } from "../connection/database.ts";
import { installationOf } from "../connection/handle.ts";

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
export const recentRunColumns = sql`
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
    select ${recentRunColumns} from bi.runs where installation = ${installationOf(db)}
      ${job === undefined ? sql`` : sql`and (job = ${job} or starts_with(job, ${`${job}/`}))`}
      ${status === undefined ? sql`` : sql`and status = ${status}`}
    order by started_at desc, run_id limit ${RUNS_PER_PAGE + 1} offset ${(page - 1) * RUNS_PER_PAGE}
  `.execute(db);
  return { runs: rows.slice(0, RUNS_PER_PAGE), hasMore: rows.length > RUNS_PER_PAGE };
}
