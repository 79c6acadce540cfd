// How complete the series of each project are, as bi.coverage and bi.freshness show it.

import { sql } from "kysely";
import type { Tx } from "../db/connection/transaction.ts";
import type { Day } from "../usage/days.ts";
import type { Source } from "../usage/dimensions.ts";
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

/**
 * Every replica runs this at each scrape, so the query reads each slice once, where the views take several passes; only the slices of
 * series that are not whole are looked at twice.
 *
 * Missing slices are due days without a slice, or with one that was last read before its day was over ("unclosed"). Today's slice is not
 * missing: it is not due before it is over. A series is fresh through the last day before its first missing day. If as many slices were
 * read as there are days from the first due one to the newest one read, no day between them is missing. Otherwise the first missing day is
 * searched for, which is rare and slow.
 */
export async function completeness(tx: Tx): Promise<readonly ProjectHealth[]> {
  const { rows } = await sql<ProjectHealth>`
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
      min(fresh_through) filter (where is_active) as "freshThrough"
    from health group by source, project_id order by source desc, 1
  `.execute(tx);
  return rows;
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

/** The parts in which error texts with the same reason differ. */
const REQUEST_DETAILS = / \((?:\d+ attempts|request id [^)]*)\)/g;

export function errorReason(error: string): string {
  return error.replaceAll(REQUEST_DETAILS, "");
}
