// How complete the series are, as bi.coverage and bi.freshness show it, and which of their days are missing or failed.

import { sql } from "kysely";
import type { Tx } from "../db/connection/transaction.ts";
import type { Day } from "../usage/days.ts";
import type { Source } from "../usage/dimensions.ts";
import type { SeriesName } from "../usage/series.ts";
import type { SliceStatus } from "../usage/slice.ts";

/** Numbers of slices. */
export type SliceCounts = Readonly<Record<SliceStatus, number>>;

/** The series of a project and source together. Slices that are not complete count only if their series is configured. */
export type ProjectHealth = SliceCounts & {
  readonly project: string;
  readonly projectId: string;
  readonly source: Source;
  /** How many series are configured; 0 for a project that no longer is. */
  readonly series: number;
  /** The newest day up to which nothing of any of the series is missing; null while no day is due. */
  readonly freshThrough: Day | null;
};

export type Completeness = {
  readonly projects: readonly ProjectHealth[];
  /** The series that have missing or failed days. */
  readonly incomplete: readonly number[];
};

/**
 * Every replica runs this at each scrape, so the query reads each slice once, where the views take several passes; only the slices of
 * series that are not whole are looked at twice. `isShown` chooses the projects of `incomplete`.
 *
 * Missing slices are due days without a slice, or with one that was last read before its day was over ("unclosed"). Today's slice is not
 * missing: it is not due before it is over. A series is fresh through the last day before its first missing day. If as many slices were
 * read as there are days from the first due one to the newest one read, no day between them is missing. Otherwise the first missing day is
 * searched for, which is rare and slow.
 */
export async function completeness(tx: Tx, isShown: (project: string) => boolean = () => true): Promise<Completeness> {
  const { rows } = await sql<ProjectHealth & { readonly incomplete: readonly number[] }>`
    with known as materialized (
      select s.series_id, s.project_id, s.project, s.source, s.retired_at is null as is_active, d.due_from, d.due_until, stored.days,
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
    select max(project) as project, project_id as "projectId", source, (count(*) filter (where is_active))::integer as series,
      sum(complete)::integer as complete, coalesce(sum(missing) filter (where is_active), 0)::integer as missing,
      coalesce(sum(failed) filter (where is_active), 0)::integer as failed,
      coalesce(sum(suspect) filter (where is_active), 0)::integer as suspect,
      min(fresh_through) filter (where is_active) as "freshThrough",
      coalesce(json_agg(series_id) filter (where is_active and missing + failed > 0), '[]') as incomplete
    from health group by source, project_id order by source desc, 1
  `.execute(tx);
  return {
    projects: rows.map(({ incomplete: _, ...project }) => project),
    incomplete: rows.flatMap(({ project, incomplete }) => (isShown(project) ? incomplete : [])),
  };
}

export function countSlices(projects: readonly ProjectHealth[]): SliceCounts {
  const sum = (status: SliceStatus) => projects.reduce((total, project) => total + project[status], 0);
  return { complete: sum("complete"), suspect: sum("suspect"), failed: sum("failed"), missing: sum("missing") };
}

/** The projects with the most missing or failed days first. Suspect days count less: their numbers were right once. */
export function worstProjects(projects: readonly ProjectHealth[]): readonly ProjectHealth[] {
  const unread = ({ missing, failed }: ProjectHealth) => missing + failed;
  const freshThrough = (one: ProjectHealth) => Date.parse(one.freshThrough ?? "9999-12-31");
  return projects.toSorted(
    (a, b) => unread(b) - unread(a) || b.suspect - a.suspect || freshThrough(a) - freshThrough(b),
  );
}

/** Consecutive days of a series that are all missing or all failed. */
export type Gap = SeriesName & {
  readonly status: "missing" | "failed";
  readonly from: Day;
  readonly to: Day;
  /** Why the newest of its days failed; for missing days, that they were read only before they were over; null if they were never read. */
  readonly error: string | null;
};

export type Gaps = {
  /** The newest first, at most GAPS_MAX. */
  readonly gaps: readonly Gap[];
  /** How many older gaps are not in the list. */
  readonly gapsLeftOut: number;
};

/** In an outage every series has a gap. */
const GAPS_MAX = 5_000;

/** The gaps of these series as bi.coverage_gaps shows them, which reads the slices of all series. */
export async function readGaps(tx: Tx, seriesIds: readonly number[]): Promise<Gaps> {
  if (seriesIds.length === 0) return { gaps: [], gapsLeftOut: 0 };
  const { rows } = await sql<Gap & { readonly all: number }>`
    select s.project, s.source, s."grouping", s.filter, status, min(day) as "from", max(day) as "to",
      (array_agg(stretches.error order by day desc))[1] as error, (count(*) over ())::integer as "all"
    from (
      select *, day - (row_number() over (partition by series_id, status, error is null order by day))::integer as stretch
      from (
        select series_id, usage_date as day, status, error from usage_export.slice
        where status = 'failed' and series_id = any(${seriesIds}::integer[])
        union all
        select d.series_id, day::date, 'missing',
          'read before the day was over, at ' || to_char(sl.fetched_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI')
            || ' UTC, and not since'
        from usage_export.due_series d
        cross join generate_series(d.due_from::timestamp, d.due_until::timestamp, interval '1 day') as day
        left join usage_export.slice sl
          on sl.series_id = any(${seriesIds}::integer[]) and sl.series_id = d.series_id and sl.usage_date = day::date
        where d.series_id = any(${seriesIds}::integer[])
          and (sl.series_id is null or (sl.status = 'complete' and sl.closed_at is null))
      ) days
    ) stretches
    join usage_export.series s using (series_id)
    group by s.series_id, status, stretches.error is null, stretch
    order by max(day) desc, s.source desc, s.project, s."grouping", s.filter
    limit ${GAPS_MAX}
  `.execute(tx);
  return { gaps: rows.map(({ all: _, ...gap }) => gap), gapsLeftOut: (rows[0]?.all ?? 0) - rows.length };
}

/** Gaps that have the same days, status and reason: an outage makes the same gap in every series. */
export type GapGroup = Pick<Gap, "status" | "from" | "to" | "error"> & { readonly series: readonly SeriesName[] };

/** The parts in which error texts with the same reason differ. */
const REQUEST_DETAILS = / \((?:\d+ attempts|request id [^)]*)\)/g;

export function errorReason(error: string): string {
  return error.replaceAll(REQUEST_DETAILS, "");
}

/** Groups are in the order of their first gap. */
export function groupGaps(gaps: readonly Gap[]): readonly GapGroup[] {
  const groups = Map.groupBy(gaps, ({ status, from, to, error }) =>
    JSON.stringify([status, from, to, error && errorReason(error)]),
  );
  return [...groups.values()].flatMap((group) =>
    group.slice(0, 1).map(({ status, from, to, error }) => ({ status, from, to, error, series: group })),
  );
}
