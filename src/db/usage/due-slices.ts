// Reads for planning: the status of slices, which slices are due, and which ones a run need not read. What people see is in facts/coverage.ts.

import { sql } from "kysely";
import { batched } from "../../async.ts";
import type { Day, Window } from "../../usage/days.ts";
import { type BackfillJob, type DueSlice, RETRIED_CODES } from "../../usage/export-plan.ts";
import { STORED_METRICS } from "../../usage/metrics.ts";
import type { SliceStatus } from "../../usage/slice-decision.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import { type ProjectJob, readOpenProjects } from "../jobs/runs.ts";
import { seriesKeySql } from "./stored-series.ts";
import { numbersArray } from "./stored-slices.ts";

/** The status of each stored day in the window, by seriesKey. A past day that was read only before it ended counts as missing. */
export async function sliceStatuses(db: Database, jobs: readonly BackfillJob[], { start, end }: Window) {
  const projectIds = jobs.flatMap(({ series }) => series.map(({ project }) => project.id));
  const { rows } = await sql<{ key: string; days: Readonly<Record<Day, SliceStatus>> }>`
    select ${seriesKeySql} as key, json_object_agg(
      to_char(sl.usage_date, 'YYYY-MM-DD'), case
        when sl.status = 'complete' and sl.closed_at is null and sl.usage_date < (now() at time zone 'UTC')::date then 'missing'
        else sl.status end
    ) as days
    from usage_export.series s join usage_export.slice sl using (series_id)
    where s.project_id = any(${[...new Set(projectIds)]}::text[])
      and sl.usage_date between ${start}::date and ${end}::date
    group by s.series_id
  `.execute(db);
  return new Map(rows.map(({ key, days }) => [key, days]));
}

export type StoredDays = {
  /** The oldest stored day from `from` on; null if there is none, or no `from`. */
  readonly oldest: Day | null;
  readonly hasRows: boolean;
  /** Whether the newest complete day has no rows, or only amounts of 0: a bill may have a line item that is free. */
  readonly isNewestEmpty: boolean;
};

/** Finds nothing for a series whose answers carry no date. */
export async function storedDays(db: Database, seriesId: number, from: Day | undefined): Promise<StoredDays> {
  const amounts = sql.join(STORED_METRICS.map((metric) => sql`abs(r.${sql.ref(metric)})`));
  const { rows } = await sql<StoredDays>`
    select to_char(oldest, 'YYYY-MM-DD') as oldest, coalesce(has_rows, false) as "hasRows", newest is not null and not exists (
        select from usage_export.slice_row r
        where r.series_id = ${seriesId} and r.usage_date = newest and not r.gone and greatest(${amounts}) > 0
      ) as "isNewestEmpty"
    from (
      select min(sl.usage_date) filter (where sl.usage_date >= ${from ?? null}::date) as oldest, bool_or(sl.rows > 0) as has_rows,
        max(sl.usage_date) filter (where sl.status = 'complete') as newest
      from usage_export.slice sl
      join usage_export.series s using (series_id)
      where sl.series_id = ${seriesId} and sl.fetch_no > 0 and s.undated_since is null
    ) stored
  `.execute(db);
  return rows[0] ?? { oldest: null, hasRows: false, isNewestEmpty: false };
}

/** A suspect slice `sl` that another reading may confirm, but that no scheduled run reads, as it is older than the window of `d`. */
const IS_LEFT_IN_DOUBT = sql`(
  sl.status = 'suspect' and sl.suspect_why is distinct from 'filter-ignored'
  and coalesce(sl.usage_date < (now() at time zone 'UTC')::date - d.window_days, false)
)`;

/** The series that may have due slices to read. Each worker asks every 10 s, so that it calls the costlier `dueSlices` only for these. */
export async function incompleteSeries(tx: Tx): Promise<readonly number[]> {
  const { rows } = await sql<{ ids: readonly number[] }>`
    select coalesce(json_agg(series_id), '[]') as ids from usage_export.series_days where due_from is not null and is_whole is not true
  `.execute(tx);
  return rows[0]?.ids ?? [];
}

/** False for an attempt in the future, after the database's clock was set back. It neither settles a day nor delays a reading. */
const ATTEMPTED_BEFORE_NOW = sql`sl.attempted_at < now() + interval '1 minute'`;

/** The due slices of these series that need another reading, the newest days first. */
export async function dueSlices(db: Database, seriesIds: readonly number[]): Promise<readonly DueSlice[]> {
  const { rows } = await sql<DueSlice>`
    with due as materialized (
      select * from usage_export.due_series where series_id = any(${numbersArray(seriesIds)}::integer[])
    ), incomplete as materialized (
      -- The series with fewer good slices than due days. Only these are examined day by day.
      select d.*
      from due d
      left join (
        select series_id,
          count(*) filter (
            where sl.status <> 'failed' and sl.usage_date between d.due_from and d.due_until and sl.closed_at is not null
              and not ${IS_LEFT_IN_DOUBT}
          ) as days
        from usage_export.slice sl join due d using (series_id) group by series_id
      ) counted using (series_id)
      where d.due_until - d.due_from + 1 > coalesce(counted.days, 0)
    )
    select d.series_id as "seriesId", to_char(day, 'YYYY-MM-DD') as day,
      case when sl.series_id is null or sl.status = 'complete' then 'missing' else sl.status end as status,
      case when ${ATTEMPTED_BEFORE_NOW} then sl.attempted_at end as "attemptedAt", sl.error_code as code,
      case sl.status when 'suspect' then sl.suspect_since else sl.failing_since end as since
    from incomplete d
    cross join generate_series(d.due_from::timestamp, d.due_until::timestamp, interval '1 day') as day
    left join usage_export.slice sl on sl.series_id = d.series_id and sl.usage_date = day::date
    where sl.series_id is null or sl.status = 'failed' or sl.closed_at is null or ${IS_LEFT_IN_DOUBT}
    order by day desc, d.series_id
  `.execute(db);
  return rows;
}

/** A slice that a run need not read: since the run began it was read, or failed with an error that the queue does not retry. */
export type SettledSlice = {
  readonly seriesId: number;
  /** Null if the service chooses the days: then the whole series is settled. */
  readonly day: Day | null;
  readonly status: Exclude<SliceStatus, "missing">;
};

export type SeriesOfRun = {
  readonly seriesIds: readonly number[];
  readonly window: Window | undefined;
  /** The run's fetch number: requests with a higher one began after the run. */
  readonly fetchNo: number;
  readonly startedAt: Date;
};

/** The settled slices of each of `runs`, in the same order. A series without a window has one at most, with the worst status of its days. */
export async function settledSlices(db: Database, runs: readonly SeriesOfRun[]) {
  const series = runs.flatMap((run, i) => run.seriesIds.map((id) => ({ ...run, id, i })));
  const { rows } = await sql<SettledSlice & { readonly i: number }>`
    with run as (
      select * from unnest(
        ${numbersArray(series.map(({ i }) => i))}::integer[], ${numbersArray(series.map(({ id }) => id))}::integer[],
        ${series.map(({ window }) => window?.start ?? null)}::text[]::date[],
        ${series.map(({ window }) => window?.end ?? null)}::text[]::date[],
        ${numbersArray(series.map(({ fetchNo }) => fetchNo))}::bigint[], ${series.map(({ startedAt }) => startedAt.toISOString())}::timestamptz[]
      ) as run (i, series_id, first_day, last_day, fetch_no, started_at)
    ), settled as (
      select i, series_id, case when first_day is not null then usage_date end as day, status
      from run join usage_export.slice sl using (series_id)
      where sl.usage_date between coalesce(first_day, '-infinity') and coalesce(last_day, 'infinity') and (
        greatest(sl.fetch_no, sl.suspect_fetch_no) > run.fetch_no
        or (sl.status = 'failed' and sl.attempted_at >= run.started_at and ${ATTEMPTED_BEFORE_NOW}
          and not coalesce(sl.error_code, '') = any(${RETRIED_CODES}::text[]))
      )
      union all
      select i, series_id, null, 'complete' from run join usage_export.undated_snapshot n using (series_id)
      where first_day is null and n.fetch_no > run.fetch_no
    )
    select i, series_id as "seriesId", to_char(day, 'YYYY-MM-DD') as day,
      (array_agg(status order by status = 'failed' desc, status desc))[1] as status
    from settled group by i, series_id, day
  `.execute(db);
  const byRun = Map.groupBy(rows, ({ i }) => i);
  return runs.map((_, i): readonly SettledSlice[] => byRun.get(i) ?? []);
}

export type Reader = ReturnType<typeof openReader>;

const BATCH_LIMITS = { weightMax: 100 };

/** Reads what a worker needs to start on a project. Projects that are claimed together share statements, 100 projects at most. */
export function openReader(db: Database) {
  return {
    readOpenProject: batched((projects: readonly ProjectJob[]) => readOpenProjects(db, projects), BATCH_LIMITS),
    settledSlices: batched((series: readonly SeriesOfRun[]) => settledSlices(db, series), BATCH_LIMITS),
    dueSlices: batched(async (series: readonly (readonly number[])[]) => {
      const bySeries = Map.groupBy(await dueSlices(db, series.flat()), ({ seriesId }) => seriesId);
      return series.map((ids) => ids.flatMap((id) => bySeries.get(id) ?? []));
    }, BATCH_LIMITS),
  };
}
