// Reads the newest runs of all jobs or of one, and one run with its projects.

import { sql } from "kysely";
import type { RunCounts } from "../../usage/export.ts";
import type { Database } from "../connection/database.ts";
import { existingPage } from "../limits.ts";

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
    where ${job === undefined ? sql`true` : sql`(job = ${job} or starts_with(job, ${`${job}/`}))`}
      and ${status === undefined ? sql`true` : sql`status = ${status}`}
    order by started_at desc, run_id limit ${RUNS_PER_PAGE + 1} offset ${(page - 1) * RUNS_PER_PAGE}
  `.execute(db);
  return { runs: rows.slice(0, RUNS_PER_PAGE), hasMore: rows.length > RUNS_PER_PAGE };
}

export const PROJECT_OUTCOMES = ["failed", "open", "ok"] as const;

export type ProjectFilter = {
  readonly outcome: (typeof PROJECT_OUTCOMES)[number] | undefined;
  /** The name or the identifier of a project. */
  readonly project: string | undefined;
  /** From 1. */
  readonly page: number;
};

type ProjectOfRun = RunCounts & {
  readonly project: string;
  readonly outcome: (typeof PROJECT_OUTCOMES)[number];
  readonly finishedAt: Date | null;
  /** The first error. */
  readonly error: string | null;
};

export type RunDetails = {
  readonly run: RecentRun;
  /** How many projects the filter lets through. */
  readonly found: number;
  /** Of these, the page: those that went wrong first, then the newest. */
  readonly projects: readonly ProjectOfRun[];
};

export const PROJECTS_PER_PAGE = 100;

/** Undefined if there is no such run. */
export async function readRunDetails(
  db: Database,
  runId: string,
  { outcome, project, page }: ProjectFilter,
): Promise<RunDetails | undefined> {
  const { rows: runs } = await sql<RecentRun>`
    select ${recentRunColumns} from bi.runs where run_id::text = ${runId}
  `.execute(db);
  const [run] = runs;
  if (!run) return undefined;
  const filtered = sql`
    from (
      select p.*, coalesce(named.project, p.project_id) as project,
        case when p.finished_at is null then 'open' when p.error is not null or slices_suspect + slices_failed > 0 then 'failed'
          else 'ok' end as outcome
      from usage_export.run_project p
      left join (select project_id, min(project) as project from usage_export.series group by project_id) named using (project_id)
      where run_id = ${run.runId}::uuid
    ) p
    where ${outcome === undefined ? sql`true` : sql`outcome = ${outcome}`}
      and ${project === undefined ? sql`true` : sql`${project} in (project, project_id)`}
  `;
  const { rows: totals } = await sql<{ found: number }>`select count(*)::integer as found ${filtered}`.execute(db);
  const found = totals[0]?.found ?? 0;
  const { rows: projects } = await sql<ProjectOfRun>`
    select project, outcome, finished_at as "finishedAt", error, requests, slices_planned as planned, slices_complete as complete,
      slices_suspect as suspect, slices_failed as failed, slices_undated as undated, slices_stale as stale,
      rows_changed::double precision as "rowsChanged"
    ${filtered}
    order by array_position(${[...PROJECT_OUTCOMES]}::text[], outcome), finished_at desc, project collate "C"
    limit ${PROJECTS_PER_PAGE} offset ${(existingPage(page, found, PROJECTS_PER_PAGE) - 1) * PROJECTS_PER_PAGE}
  `.execute(db);
  return { run, found, projects };
}
