// Reads one run: how it ended, its requests, and those that are still open.

import { sql } from "kysely";
import type { Day } from "../../usage/days.ts";
import type { SeriesName } from "../../usage/series.ts";
import type { Database } from "../connection/database.ts";
import { installationOf } from "../connection/handle.ts";
import { type RecentRun, recentRunColumns } from "./recent-runs.ts";
import { type RequestFilter, type RunRequests, readRequests } from "./run-requests.ts";

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
  return {
    run,
    open,
    openLeftOut: (open[0]?.count ?? 0) - open.length,
    requests: await readRequests(db, run.runId, filter),
  };
}
