// Reads which values of a dimension stored usage has, for the filters that are fanned out over them.

import { sql } from "kysely";
import type { Day, Window } from "../../usage/days.ts";
import type { Dimension } from "../../usage/dimensions.ts";
import type { Database } from "../connection/database.ts";

export type StoredValue = {
  readonly projectId: string;
  readonly value: string;
  /** The first of the days on which it has usage. */
  readonly firstDay: Day;
  /** The newest of the days that was read by the dimension, whatever values it had. */
  readonly lastRead: Day;
};

/** No service has as many values in use that a fan-out could read, which reads 500 at most. */
const VALUES_MAX = 5_000;

/**
 * The members of the groups of all usage by the dimension on these days. Those with the most requests come first, then those with the
 * most hours. Of a set of tags each tag is a value.
 */
export async function storedValues(
  db: Database,
  projectIds: readonly string[],
  dimension: Dimension,
  { start, end }: Window,
): Promise<readonly StoredValue[]> {
  const { rows } = await sql<StoredValue>`
    with series as materialized (
      select series_id, project_id from usage_export.series
      where source = 'usage' and project_id = any(${projectIds}::text[]) and "grouping" = ${dimension} and filter_key = '{}' and superseded_at is null
    ),
    read as (
      select s.project_id, max(sl.usage_date) as last_read
      from series s join usage_export.slice sl using (series_id)
      where sl.usage_date between ${start}::date and ${end}::date and sl.fetched_at is not null
      group by s.project_id
    ),
    grouped as (
      select s.project_id, r.group_id, min(r.usage_date) as first_day, sum(r.requests) as requests, sum(r.hours) as hours
      from series s join usage_export.snapshot_row r using (series_id)
      where r.usage_date between ${start}::date and ${end}::date and not r.gone
      group by s.project_id, r.group_id
    ),
    valued as (
      select g.project_id, v.value, min(g.first_day) as first_day, sum(g.requests) as requests, sum(g.hours) as hours
      from grouped g
      join usage_export.group_value named using (group_id)
      -- Any other group has no value. Postgres has no NUL, and no key or tag has one in its name.
      cross join lateral json_array_elements_text(
        case when named.group_key like '[%' and strpos(named.group_key, '\\u0000') = 0 then named.group_key else '[]' end::json
      ) as v (value)
      where v.value is not null
      group by g.project_id, v.value
    )
    select v.project_id as "projectId", v.value, to_char(v.first_day, 'YYYY-MM-DD') as "firstDay",
      to_char(r.last_read, 'YYYY-MM-DD') as "lastRead"
    from valued v join read r using (project_id)
    order by v.requests desc nulls last, v.hours desc nulls last, v.value collate "C"
    limit ${VALUES_MAX}
  `.execute(db);
  return rows;
}
