// Reads what the health state is made of: how complete each series is, its gaps, and how the runs of each job ended.

import { sql } from "kysely";
import type { Day } from "../usage/days.ts";
import type { Source } from "../usage/dimensions.ts";
import type { RunCounts } from "../usage/export.ts";
import type { SeriesName } from "../usage/series.ts";
import type { SliceStatus } from "../usage/slice.ts";
import type { Database } from "./connection/database.ts";
import type { Tx } from "./connection/transaction.ts";
import type { JobId } from "./jobs/jobs.ts";
import type { RecentRun } from "./jobs/recent-runs.ts";

/** Numbers of slices, of one series or of several. */
type Coverage = Readonly<Record<SliceStatus, number>> & {
  /** The newest day up to which nothing of any of the series is missing; null while no day is due. */
  readonly freshThrough: Day | null;
};

export type SeriesHealth = SeriesName &
  Coverage & {
    readonly source: Source;
    readonly seriesId: number;
    /** The series' identity, as seriesKey in usage/series.ts writes it. */
    readonly key: string;
    /** The series is configured now. A series that no longer is keeps its slices, and none of its days is due. */
    readonly isActive: boolean;
  };

/** The series of a project and source together. Slices that are not complete count only if their series is configured. */
export type ProjectHealth = Coverage & {
  readonly project: string;
  readonly projectId: string;
  readonly source: Source;
  /** How many series are configured; 0 for a project that no longer is. */
  readonly series: number;
};

export type Completeness = {
  /** If not too many are configured, every series; otherwise those that are configured and have a day that is not complete. */
  readonly series: readonly SeriesHealth[];
  readonly seriesCount: number;
  readonly projects: readonly ProjectHealth[];
};

/**
 * How complete each series is, as bi.coverage and bi.freshness show it. Every replica runs this at each scrape, so the
 * query reads each slice once, where the views take several passes; only the slices of series that are not whole are looked at twice.
 *
 * Missing slices are due days without a slice, or with one that was last read before its day was over ("unclosed"). Today's slice is
 * not missing: it is not due before it is over. A series is fresh through the last day before its
 * first missing day. If as many slices were read as there are days from the first due one to the newest one read, no day between them is
 * missing. Otherwise the first missing day is searched for, which is rare and slow.
 *
 * If more than `listedMax` series are configured, those that are complete are only counted: tens of thousands of them would take seconds.
 */
export async function readCompleteness(tx: Tx, listedMax: number): Promise<Completeness> {
  const { rows } = await sql<CompletenessRow>`
    with known as materialized (
      select s.series_id, s.project_id, s.project, s.source, s."grouping", s.filter_key, s.filter, s.retired_at is null as is_active,
        d.due_from, d.due_until, stored.days,
        -- Then every slice counts as complete, and if any day is due, none is missing.
        stored.are_good and (d.series_id is null or stored.are_due) is true as is_whole
      from usage_export.series s
      left join usage_export.due_series d using (series_id)
      left join usage_export.stored_days stored using (series_id)
      where s.superseded_at is null
    ),
    counted as materialized (
      select series_id, days as present, days as read, due_until as last_read, days as complete, 0 as failed, 0 as suspect
      from known where is_whole
      union all
      select series_id, count(*) filter (where due.due and not due.unclosed)::integer,
        count(*) filter (where due.due and not due.unclosed and sl.fetched_at is not null)::integer,
        max(sl.usage_date) filter (where due.due and not due.unclosed and sl.fetched_at is not null),
        count(*) filter (where sl.status = 'complete' and (due.due and due.unclosed) is not true)::integer,
        count(*) filter (where sl.status = 'failed')::integer, count(*) filter (where sl.status = 'suspect')::integer
      from known k
      join usage_export.slice sl using (series_id)
      cross join lateral (
        select sl.usage_date between k.due_from and k.due_until as due,
          sl.status = 'complete' and sl.closed_at is null and sl.usage_date <= k.due_until as unclosed
      ) due
      where k.is_whole is not true
      group by series_id
    ),
    health as materialized (
      select k.*, coalesce(c.complete, 0) as complete, coalesce(c.failed, 0) as failed, coalesce(c.suspect, 0) as suspect,
        -- After a clock was set back, due_from may lie after due_until. A negative number would cancel out missing days of
        -- other series in a sum.
        greatest(k.due_until - k.due_from + 1 - coalesce(c.present, 0), 0) as missing,
        least(k.due_until, case
          when coalesce(c.read, 0) = 0 then k.due_from - 1
          when c.read = c.last_read - k.due_from + 1 then c.last_read
          else (
            select min(day)::date - 1
            from generate_series(k.due_from::timestamp, k.due_until::timestamp, interval '1 day') as day
            where not exists (
              select from usage_export.slice sl
              where sl.series_id = k.series_id and sl.usage_date = day::date and sl.fetched_at is not null
                and not (sl.status = 'complete' and sl.closed_at is null)
            )
          )
        end) as fresh_through
      from known k
      left join counted c using (series_id)
    )
    select series_id as "seriesId", project_id as "projectId", project, source, "grouping", filter_key as "filterKey", filter,
      is_active as "isActive", complete, missing, failed, suspect, fresh_through as "freshThrough", null as series
    from health
    where (select count(*) from health where is_active) <= ${listedMax}
      or (is_active and missing + failed + suspect > 0)
    union all
    select null, project_id, max(project), source, null, null, null, null, sum(complete)::integer,
      coalesce(sum(missing) filter (where is_active), 0)::integer, coalesce(sum(failed) filter (where is_active), 0)::integer,
      coalesce(sum(suspect) filter (where is_active), 0)::integer, min(fresh_through) filter (where is_active),
      count(*) filter (where is_active)::integer
    from health
    group by source, project_id
    order by source desc, project, "grouping", filter
  `.execute(tx);
  const projects = rows.flatMap((row) => (row.series === null ? [] : [projectOf(row)]));
  return {
    series: rows.flatMap((row) => (row.series === null ? [seriesOf(row)] : [])),
    seriesCount: projects.reduce((sum, { series }) => sum + series, 0),
    projects,
  };
}

/** A series; or a project, which has a number of series. */
type CompletenessRow = Omit<SeriesHealth, "key"> &
  Omit<ProjectHealth, "series"> & { readonly filterKey: string; readonly series: number | null };

function seriesOf({ projectId, filterKey, series: _, ...row }: CompletenessRow): SeriesHealth {
  return { ...row, key: JSON.stringify([row.source, projectId, row.grouping, filterKey]) };
}

function projectOf(row: CompletenessRow): ProjectHealth {
  const { project, projectId, source, series, complete, missing, failed, suspect, freshThrough } = row;
  return { project, projectId, source, series: series ?? 0, complete, missing, failed, suspect, freshThrough };
}

/** Consecutive days of a series that are all missing or all failed. */
export type Gap = SeriesName & {
  /** The series' identity, as seriesKey in usage/series.ts writes it. */
  readonly key: string;
  readonly status: "missing" | "failed";
  readonly from: Day;
  readonly to: Day;
  /** Why the newest of its days failed; for missing days, that they were read only before they were over; null if they were never read. */
  readonly error: string | null;
};

export type Gaps = { readonly gaps: readonly Gap[]; readonly gapsLeftOut: number };

/** In an outage every series has a gap. */
const GAPS_MAX = 5_000;

/**
 * The gaps as bi.coverage_gaps shows them, the newest first; gaps that end on the same day are in the order of `series`. Only the
 * slices of series with gaps are read, so while nothing is missing or failed, no slice is read.
 */
export async function readGaps(tx: Tx, series: readonly SeriesHealth[]): Promise<Gaps> {
  const active = new Map(series.flatMap((one) => (one.isActive ? [[one.seriesId, one] as const] : [])));
  const idsWith = (status: Gap["status"]) =>
    [...active.values()].filter((one) => one[status] > 0).map((one) => one.seriesId);
  const [missing, failed] = [idsWith("missing"), idsWith("failed")];
  if (missing.length + failed.length === 0) return { gaps: [], gapsLeftOut: 0 };
  const { rows } = await sql<Omit<Gap, "key" | keyof SeriesName> & { readonly seriesId: number; readonly all: number }>`
    select series_id as "seriesId", status, min(day) as "from", max(day) as "to",
      (array_agg(error order by day desc))[1] as error, (count(*) over ())::integer as "all"
    from (
      select *, day - (row_number() over (partition by series_id, status, error is null order by day))::integer as stretch
      from (
        select series_id, usage_date as day, status, error from usage_export.slice
        where status = 'failed' and series_id = any(${failed}::integer[])
        union all
        select d.series_id, day::date, 'missing',
          'read before the day was over, at ' || to_char(sl.fetched_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI')
            || ' UTC, and not since'
        from usage_export.due_series d
        cross join generate_series(d.due_from::timestamp, d.due_until::timestamp, interval '1 day') as day
        left join usage_export.slice sl
          on sl.series_id = any(${missing}::integer[]) and sl.series_id = d.series_id and sl.usage_date = day::date
        where d.series_id = any(${missing}::integer[])
          and (sl.series_id is null or (sl.status = 'complete' and sl.closed_at is null))
      ) days
    ) stretches
    join unnest(${[...active.keys()]}::integer[]) with ordinality as listed (series_id, position) using (series_id)
    group by series_id, listed.position, status, error is null, stretch
    order by max(day) desc, listed.position
    limit ${GAPS_MAX}
  `.execute(tx);
  const gaps = rows.flatMap(({ seriesId, all: _, ...gap }) => {
    const one = active.get(seriesId);
    if (!one) return [];
    const { key, project, source, grouping, filter } = one;
    return [{ key, project, source, grouping, filter, ...gap }];
  });
  return { gaps, gapsLeftOut: (rows[0]?.all ?? 0) - rows.length };
}

export type UndatedSeries = SeriesName & {
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
    where s.undated_since is not null and s.window_days is null and s.superseded_at is null
      and s.retired_at is null
    order by s.project collate "C", s."grouping", s.filter collate "C"
  `.execute(db);
  return rows;
}

// How the runs of jobs ended. One index lookup for each job, and no pass over all runs: a job that ran for years has very many.

export type LastRun = Omit<RecentRun, "runId" | keyof RunCounts> & {
  /** Scheduled times that were skipped since the run started. */
  readonly skippedSince: number;
};

/** The newest run of each job, without skipped ones: a skipped run only says that the run before it was still running. */
export async function lastRuns(db: Database, jobs: readonly JobId[]): Promise<readonly LastRun[]> {
  const { rows } = await sql<LastRun>`
    select r.job, r.kind, r.trigger, r.status, r.started_at as "startedAt", r.finished_at as "finishedAt", r.error,
      (
        select count(*)::integer from usage_export.run skipped
        where skipped.kind = c.kind and skipped.job = c.name and skipped.started_at > r.started_at
          and skipped.status = 'skipped'
      ) as "skippedSince"
    from ${listed(jobs)}
    cross join lateral (
      select * from bi.runs r where r.kind = c.kind and r.job = c.name and r.status <> 'skipped'
      order by r.started_at desc limit 1
    ) r
  `.execute(db);
  return rows;
}

export type LastOutcome = Pick<RecentRun, "trigger" | "startedAt" | "error" | "planned" | "suspect" | "failed"> & {
  readonly status: "ok" | "failed";
};

export type JobToJudge = JobId & {
  /** None of its slices is failed. */
  readonly hasNoFailedSlice: boolean;
};

/**
 * The newest run of each job that ended well or failed. A skipped or stopped run says nothing about the job. Nor does a failed
 * backfill: a person chose its days.
 *
 * A backfill, or a run that only read missing or failed days, counts only if it succeeded and no slice of the job is failed. A day
 * that the service always refuses is requested again whenever its retry delay is over; if those runs counted, the job would
 * alternate between failed and ok every night. A catch-up counts like a scheduled run if it has a scheduled time; without one it only
 * read missing or failed days.
 */
export async function lastOutcomes(tx: Tx, jobs: readonly JobToJudge[]): Promise<readonly (JobId & LastOutcome)[]> {
  const { rows } = await sql<JobId & LastOutcome>`
    select c.kind, c.name, r.status, r.trigger, r.started_at as "startedAt", r.slices_planned as planned,
      r.slices_suspect as suspect, r.slices_failed as failed, r.error
    from ${listed(jobs)}
    cross join lateral (
      select * from bi.runs r
      where r.kind = c.kind and r.job = c.name and r.status in ('ok', 'failed')
        and (
          r.trigger in ('schedule', 'manual') or r.scheduled_for is not null
          or (r.status = 'ok' and (${jobs.map((job) => job.hasNoFailedSlice)}::boolean[])[c.position::integer])
        )
      order by r.started_at desc limit 1
    ) r
  `.execute(tx);
  return rows;
}

export type JobRecord = JobId & {
  /** A run is in progress: workers share it, or its one process has sent a heartbeat within the last minute. */
  readonly isRunning: boolean;
  /** When the newest successful run ended, in seconds since 1970; null if none did. Backfills do not count. */
  readonly lastSuccess: number | null;
  /** Runs that failed or were interrupted since then. */
  readonly failures: number;
};

export async function jobRecords(tx: Tx, jobs: readonly JobId[]): Promise<readonly JobRecord[]> {
  const { rows } = await sql<JobRecord>`
    select c.kind, c.name, extract(epoch from ok.finished_at)::double precision as "lastSuccess",
      (
        select count(*)::integer from bi.runs r
        where r.kind = c.kind and r.job = c.name and r.trigger <> 'backfill' and r.status in ('failed', 'interrupted')
          and (ok.started_at is null or r.started_at > ok.started_at)
      ) as failures,
      exists (
        select from usage_export.run r
        where r.kind = c.kind and r.job = c.name and r.status = 'running'
          and (r.projects_open is not null or r.heartbeat_at > now() - interval '1 minute')
      ) as "isRunning"
    from ${listed(jobs)}
    left join lateral (
      select started_at, finished_at from usage_export.run r
      where r.kind = c.kind and r.job = c.name and r.trigger <> 'backfill' and r.status = 'ok'
      order by started_at desc limit 1
    ) ok on true
  `.execute(tx);
  return rows;
}

/** The jobs as a relation `c`. */
function listed(jobs: readonly JobId[]) {
  return sql`
    unnest(${jobs.map(({ kind }) => kind)}::text[], ${jobs.map(({ name }) => name)}::text[])
      with ordinality as c (kind, name, position)
  `;
}
