// The newest runs of all jobs, and one run with its projects, for the pages.

import { sql } from "kysely";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot, type Tx } from "../db/connection/transaction.ts";
import { outcomeColumns, runColumns, type StoredRun } from "../db/jobs/runs.ts";
import type { RunCounts } from "../usage/counts.ts";

export type { StoredRun } from "../db/jobs/runs.ts";

const RUNS_READ_MAX = 100;

/** The newest first; enough to show how long each job took lately. */
export async function readRuns(db: Database, max = RUNS_READ_MAX): Promise<readonly StoredRun[]> {
  const query = sql<StoredRun>`select ${runColumns} from bi.runs order by started_at desc, run_id limit ${max}`;
  return (await readSnapshot(db, (tx) => query.execute(tx), BRIEF_SNAPSHOT_SECONDS)).rows;
}

type ProjectOfRun = RunCounts & {
  readonly project: string;
  readonly outcome: "failed" | "open" | "ok";
  readonly finishedAt: Date | null;
  /** The first error. */
  readonly error: string | null;
};

export type RunDetails = {
  readonly run: StoredRun;
  /** How many projects it has read, or should have. */
  readonly found: number;
  /** At most 100 projects: failed ones first, then those that are not done yet. */
  readonly projects: readonly ProjectOfRun[];
};

const PROJECTS_MAX = 100;

/** Undefined if there is no such run. */
export async function readRun(db: Database, runId: string): Promise<RunDetails | undefined> {
  return readSnapshot(db, (tx) => runDetails(tx, runId), BRIEF_SNAPSHOT_SECONDS);
}

async function runDetails(db: Tx, runId: string): Promise<RunDetails | undefined> {
  const { rows: runs } = await sql<StoredRun>`
    select ${runColumns} from bi.runs where run_id::text = ${runId}
  `.execute(db);
  const [run] = runs;
  if (!run) return undefined;
  const { rows } = await sql<ProjectOfRun & { readonly found: number }>`
    select project, outcome, ${outcomeColumns}, (count(*) over ())::integer as found
    from (
      select p.*, coalesce(named.project, p.project_id) as project,
        case when p.finished_at is null then 'open' when p.error is not null or slices_suspect + slices_failed > 0 then 'failed'
          else 'ok' end as outcome
      from usage_export.run_project p
      left join (select project_id, min(project) as project from usage_export.series group by project_id) named using (project_id)
      where run_id = ${run.runId}::uuid
    ) p
    order by array_position(array['failed', 'open', 'ok'], outcome), finished_at desc, project collate "C"
    limit ${PROJECTS_MAX}
  `.execute(db);
  return { run, found: rows[0]?.found ?? 0, projects: rows.map(({ found: _, ...project }) => project) };
}
