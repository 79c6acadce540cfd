// Reads what status, the dashboard and /metrics show. The views of schema bi are used where BI tools ask the same.

import { sql } from "kysely";
import type { Day } from "../usage/days.ts";
import type { Database } from "./connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot, type Tx } from "./connection/transaction.ts";
import { type JobId, jobMetrics, type MonitoredJob, queueMetrics } from "./jobs/jobs.ts";
import { workerMetrics } from "./jobs/workers.ts";
import { rotationMetrics } from "./keys/status.ts";
import type { MetricSample } from "./schema.ts";
import { coverageMetrics } from "./usage/coverage.ts";

export type LastRun = {
  readonly job: string;
  readonly kind: string;
  readonly trigger: string;
  readonly status: string;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  readonly error: string | null;
  /** Schedule moments that were skipped since the run started. */
  readonly skippedSince: number;
};

/**
 * The newest run of each job, leaving out skipped moments: they say nothing about the run that blocked them. Each job has a
 * lookup of its own, because a job that ran for years has very many runs.
 */
export async function lastRuns(db: Database, jobs: readonly JobId[]): Promise<readonly LastRun[]> {
  const { rows } = await sql<LastRun>`
    select r.job, r.kind, r.trigger, r.status, r.started_at as "startedAt", r.finished_at as "finishedAt", r.error,
      (
        select count(*)::integer from usage_export.run skipped
        where skipped.kind = c.kind and skipped.job = c.name and skipped.started_at > r.started_at
          and skipped.status = 'skipped'
      ) as "skippedSince"
    from unnest(${jobs.map(({ kind }) => kind)}::text[], ${jobs.map(({ name }) => name)}::text[]) as c (kind, name)
    cross join lateral (
      select * from bi.runs r where r.kind = c.kind and r.job = c.name and r.status <> 'skipped'
      order by r.started_at desc limit 1
    ) r
  `.execute(db);
  return rows;
}

export type RecentRun = Omit<LastRun, "skippedSince"> & {
  readonly planned: number;
  readonly complete: number;
  readonly suspect: number;
  readonly failed: number;
  readonly undated: number;
  readonly stale: number;
  /** Rows that appeared, changed or went. */
  readonly rowsChanged: number;
};

/** The newest runs of all jobs, the newest first. */
export async function recentRuns(db: Database, runsMax: number): Promise<readonly RecentRun[]> {
  const { rows } = await sql<RecentRun>`
    select job, kind, trigger, status, started_at as "startedAt", finished_at as "finishedAt", error,
      slices_planned as planned, slices_complete as complete, slices_suspect as suspect, slices_failed as failed,
      slices_undated as undated, slices_stale as stale,
      rows_changed::double precision as "rowsChanged"
    from bi.runs order by started_at desc, run_id limit ${runsMax}
  `.execute(db);
  return rows;
}

export type CoverageCounts = Readonly<Record<"complete" | "suspect" | "failed" | "missing", number>>;

export async function coverageCounts(db: Database): Promise<CoverageCounts> {
  const { rows } = await sql<{ status: keyof CoverageCounts; slices: number }>`
    select status, count(*)::integer as slices from bi.coverage where status <> 'undated' group by status
  `.execute(db);
  return {
    complete: 0,
    suspect: 0,
    failed: 0,
    missing: 0,
    ...Object.fromEntries(rows.map((row) => [row.status, row.slices])),
  };
}

/** Keys of the series in which the newest reading of some day failed. */
export async function failedSeries(db: Database): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ projectId: string; grouping: string; filterKey: string }>`
    select s.project_id as "projectId", s."grouping", s.filter_key as "filterKey" from usage_export.series s
    where s.superseded_at is null
      and exists (select from usage_export.slice sl where sl.series_id = s.series_id and sl.status = 'failed')
  `.execute(db);
  return new Set(rows.map(({ projectId, grouping, filterKey }) => JSON.stringify([projectId, grouping, filterKey])));
}

export type UndatedSeries = {
  readonly project: string;
  readonly grouping: string;
  readonly filter: string;
  readonly snapshots: number;
  /** When the newest snapshot was taken. */
  readonly takenAt: Date;
};

/** The series whose answers carry no date, so that they have no days. */
export async function undatedSeries(db: Database): Promise<readonly UndatedSeries[]> {
  const { rows } = await sql<UndatedSeries>`
    select s.project, s."grouping", s.filter, newest.snapshot_no as snapshots, newest.taken_at as "takenAt"
    from usage_export.series s
    cross join lateral (
      select snapshot_no, taken_at from usage_export.undated_snapshot n
      where n.series_id = s.series_id order by snapshot_no desc limit 1
    ) newest
    where s.undated_since is not null and s.window_days is null and s.superseded_at is null and s.retired_at is null
    order by s.project collate "C", s."grouping", s.filter collate "C"
  `.execute(db);
  return rows;
}

export type Gap = {
  readonly project: string;
  readonly grouping: string;
  readonly filter: string;
  readonly status: string;
  readonly from: Day;
  readonly to: Day;
  readonly error: string | null;
};

/** The stretches of days that are missing or failed, the newest first. */
export async function coverageGaps(db: Database): Promise<readonly Gap[]> {
  const { rows } = await sql<Gap>`
    select project, "grouping", filter, status, from_date as "from", to_date as "to", error
    from bi.coverage_gaps order by to_date desc, project, "grouping", filter
  `.execute(db);
  return rows;
}

// Reads the numbers that a monitor shows, all of one moment.

export async function readMetricSamples(db: Database, jobs: readonly MonitoredJob[]): Promise<readonly MetricSample[]> {
  const readAll = async (tx: Tx) => [
    ...(await coverageMetrics(tx)),
    ...(await jobMetrics(tx, jobs)),
    ...(await rotationMetrics(tx)),
    ...(await queueMetrics(tx)),
    ...(await workerMetrics(tx)),
  ];
  return readSnapshot(db, readAll, BRIEF_SNAPSHOT_SECONDS);
}
