// Reads for planning: the status of slices, which are due, and which a run has settled. facts/coverage.ts reads what people see.

import { sql } from "kysely";
import { batched } from "../../async.ts";
import type { Day, Window } from "../../usage/days.ts";
import { type BackfillJob, type DueSlice, RETRIED_CODES } from "../../usage/export-plan.ts";
import { STORED_METRICS } from "../../usage/metrics.ts";
import type { SliceStatus } from "../../usage/slice-decision.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";
import { type ProjectJob, readOpenProjects } from "../jobs/runs.ts";
import { seriesKeyText } from "./stored-series.ts";
import { numbersArray } from "./stored-slices.ts";

/** The statuses of the days of a range. A past day that was read only before it ended is missing. */
export async function sliceStatuses(db: Database, jobs: readonly BackfillJob[], { start, end }: Window) {
  const projectIds = jobs.flatMap(({ series }) => series.map(({ project }) => project.id));
  const { rows } = await sql<{ key: string; days: Readonly<Record<Day, SliceStatus>> }>`
    select ${seriesKeyText} as key, json_object_agg(
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
  /** The oldest stored day on or after the given one. */
  readonly oldest: Day | null | undefined;
  readonly hasRows: boolean;
  /** Whether the newest complete day has no amount but 0. A free line item has rows with amounts of 0. */
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

/** Whether a suspect slice has a doubt that a later reading may confirm, and is older than the window, so that no scheduled run reads it. */
const IS_LEFT_IN_DOUBT = sql`(
  sl.status = 'suspect' and sl.suspect_why is distinct from 'filter-ignored'
  and coalesce(sl.usage_date < (now() at time zone 'UTC')::date - d.window_days, false)
)`;

/** The series that may lack due days. Each worker asks every 10 s, so series that are whole by the view series_days are skipped. */
export async function incompleteSeries(tx: Tx): Promise<readonly number[]> {
  const { rows } = await sql<{ ids: readonly number[] }>`
    select coalesce(json_agg(series_id), '[]') as ids from usage_export.series_days where due_from is not null and is_whole is not true
  `.execute(tx);
  return rows[0]?.ids ?? [];
}

/** An attempt in the future was recorded before the database's clock was set back, and does not make a day wait. */
const IS_BELIEVED = sql`sl.attempted_at < now() + interval '1 minute'`;

/** The days of these series that are due and missing, or to be read again. */
export async function dueSlices(tx: Database, seriesIds: readonly number[]): Promise<readonly DueSlice[]> {
  const { rows } = await sql<DueSlice>`
    with due as materialized (
      select * from usage_export.due_series where series_id = any(${numbersArray(seriesIds)}::integer[])
    ), incomplete as materialized (
      -- The series with fewer good slices than due days: only their days are looked at one by one.
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
      case when ${IS_BELIEVED} then sl.attempted_at end as "attemptedAt", sl.error_code as code,
      case sl.status when 'suspect' then sl.suspect_since else sl.failing_since end as since
    from incomplete d
    cross join generate_series(d.due_from::timestamp, d.due_until::timestamp, interval '1 day') as day
    left join usage_export.slice sl on sl.series_id = d.series_id and sl.usage_date = day::date
    where sl.series_id is null or sl.status = 'failed' or sl.closed_at is null or ${IS_LEFT_IN_DOUBT}
    order by day desc, d.series_id
  `.execute(tx);
  return rows;
}

/** A slice that was read, or given up, since a run began. */
export type SettledSlice = {
  readonly seriesId: number;
  /** Null if the service chooses the days: then the whole series is settled. */
  readonly day: Day | null;
  readonly status: Exclude<SliceStatus, "missing">;
};

export type SeriesOfRun = {
  readonly seriesIds: readonly number[];
  readonly window: Window | undefined;
  readonly fetchNo: number;
  readonly startedAt: Date;
};

/** The settled slices of each entry of `asked`. A failure that the queue retries settles no slice. A series without a window has its worst status. */
export async function settledSlices(db: Database, asked: readonly SeriesOfRun[]) {
  const series = asked.flatMap((one, i) => one.seriesIds.map((id) => ({ ...one, id, i })));
  const { rows } = await sql<SettledSlice & { readonly i: number }>`
    with asked as (
      select * from unnest(
        ${numbersArray(series.map(({ i }) => i))}::integer[], ${numbersArray(series.map(({ id }) => id))}::integer[],
        ${series.map(({ window }) => window?.start ?? null)}::text[]::date[],
        ${series.map(({ window }) => window?.end ?? null)}::text[]::date[],
        ${numbersArray(series.map(({ fetchNo }) => fetchNo))}::bigint[], ${series.map(({ startedAt }) => startedAt.toISOString())}::timestamptz[]
      ) as asked (i, series_id, first_day, last_day, fetch_no, started_at)
    ), settled as (
      select i, series_id, case when first_day is not null then usage_date end as day, status
      from asked join usage_export.slice sl using (series_id)
      where sl.usage_date between coalesce(first_day, '-infinity') and coalesce(last_day, 'infinity') and (
        greatest(sl.fetch_no, sl.suspect_fetch_no) > asked.fetch_no
        or (sl.status = 'failed' and sl.attempted_at >= asked.started_at and ${IS_BELIEVED}
          and not coalesce(sl.error_code, '') = any(${RETRIED_CODES}::text[]))
      )
      union all
      select i, series_id, null, 'complete' from asked join usage_export.undated_snapshot n using (series_id)
      where first_day is null and n.fetch_no > asked.fetch_no
    )
    select i, series_id as "seriesId", to_char(day, 'YYYY-MM-DD') as day,
      (array_agg(status order by status = 'failed' desc, status desc))[1] as status
    from settled group by i, series_id, day
  `.execute(db);
  const byAsked = Map.groupBy(rows, ({ i }) => i);
  return asked.map((_, i): readonly SettledSlice[] => byAsked.get(i) ?? []);
}

export type Reader = ReturnType<typeof openReader>;

const LIMITS = { weightMax: 100 };

/** Reads what a worker needs to start on a project. Projects that are claimed together are read by common statements. */
export function openReader(db: Database) {
  return {
    openProject: batched((projects: readonly ProjectJob[]) => readOpenProjects(db, projects), LIMITS),
    settledSlices: batched((series: readonly SeriesOfRun[]) => settledSlices(db, series), LIMITS),
    dueSlices: batched(async (series: readonly (readonly number[])[]) => {
      const bySeries = Map.groupBy(await dueSlices(db, series.flat()), ({ seriesId }) => seriesId);
      return series.map((ids) => ids.flatMap((id) => bySeries.get(id) ?? []));
    }, LIMITS),
  };
}
