// Reads the newest runs of all jobs.

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

/** The newest first. */
export async function recentRuns(db: Database, runsMax: number): Promise<readonly RecentRun[]> {
  const { rows } = await sql<RecentRun>`
    select ${recentRunColumns} from bi.runs where installation = ${installationOf(db)}
    order by started_at desc, run_id limit ${runsMax}
  `.execute(db);
  return rows;
}
