// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.series_period (
      series_id   integer     not null references usage_export.series,
      -- The names it was shown under.
      project     text        not null,
      filter      text        not null,
      -- -infinity for the first one: before the series was made there is nothing of it to show.
      shown_from  timestamptz not null,
      -- Null while it is shown.
      shown_until timestamptz
    )
  `.execute(db);
  await sql`create index series_period_series on usage_export.series_period (series_id)`.execute(db);
  await sql`
    create unique index series_period_open on usage_export.series_period (series_id) where shown_until is null
  `.execute(db);
  // Until now only the end of the last period was known, and was forgotten when the conditions of a name came back. While
  // another series with its name existed that was made later, a series was not shown.
  await sql`
    with ended as (
      -- The clock may have gone back in between.
      select *, case when superseded_at is not null then greatest(superseded_at, created_at) end as ended_at
      from usage_export.series
    )
    insert into usage_export.series_period (series_id, project, filter, shown_from, shown_until)
    select s.series_id, s.project, s.filter,
      case when row_number() over (partition by s.series_id order by period) = 1 then '-infinity' else lower(period) end,
      upper(period)
    from ended s
    cross join lateral unnest(
      tstzmultirange(tstzrange(s.created_at, s.ended_at)) - coalesce((
        select range_agg(tstzrange(other.created_at, other.ended_at))
        from ended other
        where other.project_id = s.project_id and other."grouping" = s."grouping" and other.filter = s.filter
          and other.created_at > s.created_at
      ), '{}')
    ) as period
  `.execute(db);
}
