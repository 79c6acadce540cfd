// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
const METRIC_COLUMNS = sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(name)));
const metricColumnsOf = (table: string) =>
  sql.join([...METRICS, "extra_metrics"].map((name) => sql.ref(`${table}.${name}`)));

/**
 * The history had every revision of a row, the newest too, which is the row itself: most rows never change, and were stored
 * twice. Now it has those that another one took the place of.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createSupersededRows(db);
  await moveHistory(db);
  await createRevisions(db);
  await replaceUsageAsOf(db);
  await replaceRestatements(db);
  await replaceRestatementCurve(db);
  await sql`drop table usage_export.snapshot_change`.execute(db);
}

async function createSupersededRows(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.snapshot_row
      -- Whether the day had been stored before this revision: its first reading is not a restatement.
      add column restates boolean not null default false,
      -- The group was gone before this revision.
      add column returned boolean not null default false
  `.execute(db);
  await sql`
    create table usage_export.superseded_row (
      series_id       integer     not null,
      usage_date      date        not null,
      group_id        integer     not null,
      hours           numeric,
      total_hours     numeric,
      agent_hours     numeric,
      tokens_in       numeric,
      tokens_out      numeric,
      tts_characters  numeric,
      requests        numeric,
      extra_metrics   jsonb,
      gone            boolean     not null,
      revision        integer     not null check (revision > 0),
      first_seen_at   timestamptz not null,
      last_changed_at timestamptz not null,
      restates        boolean     not null,
      returned        boolean     not null,
      superseded_at   timestamptz not null,
      primary key (series_id, usage_date, group_id, revision)
    )
  `.execute(db);
}

async function moveHistory(db: Kysely<unknown>): Promise<void> {
  await sql`
    update usage_export.snapshot_row r
    set restates = true, returned = c.revision > 1 and c.kind = 'appeared'
    from usage_export.snapshot_change c
    where c.restates and c.series_id = r.series_id and c.usage_date = r.usage_date and c.group_id = r.group_id
      and c.revision = r.revision
  `.execute(db);
  await sql`
    insert into usage_export.superseded_row
      (series_id, usage_date, group_id, ${METRIC_COLUMNS}, gone, revision, first_seen_at, last_changed_at, restates,
        returned, superseded_at)
    select c.series_id, c.usage_date, c.group_id, ${metricColumnsOf("c")}, c.kind = 'gone', c.revision, r.first_seen_at,
      c.seen_at, c.restates, c.revision > 1 and c.kind = 'appeared', next.seen_at
    from usage_export.snapshot_row r
    join usage_export.snapshot_change c using (series_id, usage_date, group_id)
    join usage_export.snapshot_change next
      on next.series_id = c.series_id and next.usage_date = c.usage_date and next.group_id = c.group_id
      and next.revision = c.revision + 1
    where r.revision > 1
  `.execute(db);
  // After the rows are there, as each of them would be sorted in.
  for (const table of ["snapshot_row", "superseded_row"]) {
    await sql`
      create index ${sql.id(`${table}_restates`)} on ${sql.id("usage_export", table)} (series_id, usage_date) where restates
    `.execute(db);
  }
}

/** Of each row every revision, the newest without `superseded_at`. */
async function createRevisions(db: Kysely<unknown>): Promise<void> {
  const columns = sql`
    series_id, usage_date, group_id, revision,
    case when gone then 'gone' when returned or revision = 1 then 'appeared' else 'changed' end as kind,
    restates, first_seen_at, last_changed_at as seen_at
  `;
  await sql`
    create view usage_export.row_revision as
    select ${columns}, null::timestamptz as superseded_at, ${METRIC_COLUMNS} from usage_export.snapshot_row
    union all
    select ${columns}, superseded_at, ${METRIC_COLUMNS} from usage_export.superseded_row
  `.execute(db);
}

async function replaceUsageAsOf(db: Kysely<unknown>): Promise<void> {
  await sql`
    create or replace function bi.usage_as_of(as_of timestamptz)
    returns table (
      project_id text, project text, usage_date date, "grouping" text, filter text, group_value text,
      hours numeric, total_hours numeric, agent_hours numeric, tokens_in numeric, tokens_out numeric,
      tts_characters numeric, requests numeric, extra_metrics jsonb,
      finality text, revision integer, first_seen_at timestamptz, last_changed_at timestamptz
    )
    language sql stable security definer set search_path = pg_catalog as $$
      select s.project_id, s.project, c.usage_date, s."grouping", s.filter, g.display,
        c.hours, c.total_hours, c.agent_hours, c.tokens_in, c.tokens_out, c.tts_characters, c.requests, c.extra_metrics,
        usage_export.finality(c.usage_date, s.window_days, sl.closed_at, as_of),
        c.revision, c.first_seen_at, c.seen_at
      from usage_export.row_revision c
      join usage_export.series s using (series_id)
      join usage_export.slice sl using (series_id, usage_date)
      join usage_export.group_value g using (group_id)
      where c.seen_at <= as_of and (c.superseded_at is null or c.superseded_at > as_of) and c.kind <> 'gone'
        and (s.superseded_at is null or s.superseded_at > as_of)
    $$
  `.execute(db);
}

async function replaceRestatements(db: Kysely<unknown>): Promise<void> {
  const pairs = sql.join([
    ...METRICS.map((name) => sql`(${sql.lit(name)}, ${sql.ref(`old.${name}`)}::text, ${sql.ref(`c.${name}`)}::text)`),
    sql`('extra_metrics', old.extra_metrics::text, c.extra_metrics::text)`,
  ]);
  await sql`
    create or replace view bi.restatements as
    select s.project_id, s.project, s."grouping", s.filter, c.usage_date, g.display as group_value, c.kind, m.metric,
      case when m.metric <> 'extra_metrics' then m.old_value::numeric end as old_value,
      case when m.metric <> 'extra_metrics' then m.new_value::numeric end as new_value,
      case when m.metric = 'extra_metrics' then m.old_value::jsonb end as old_extra_metrics,
      case when m.metric = 'extra_metrics' then m.new_value::jsonb end as new_extra_metrics,
      c.revision, c.seen_at, (c.seen_at at time zone 'UTC')::date - c.usage_date as days_late
    from usage_export.row_revision c
    join usage_export.series s using (series_id)
    join usage_export.group_value g using (group_id)
    left join usage_export.superseded_row old
      on old.series_id = c.series_id and old.usage_date = c.usage_date and old.group_id = c.group_id
      and old.revision = c.revision - 1
    cross join lateral (values ${pairs}) as m (metric, old_value, new_value)
    where c.restates and s.superseded_at is null and m.old_value is distinct from m.new_value
  `.execute(db);
}

/**
 * A row that was superseded is compared with what it is now; all others are as they stayed. A few sums a day: of the amounts
 * as they stayed, and of what was wrong from one day to another. Running sums of where each begins and ends make the curve.
 */
async function replaceRestatementCurve(db: Kysely<unknown>): Promise<void> {
  await sql`
    create or replace view bi.restatement_curve as
    select s.project_id, s.project, s."grouping", s.filter, curve.metric, curve.days_after,
      round(greatest(1 - curve.wrong / curve.final, 0), 9) as known_share, curve.days::integer as days
    from usage_export.series s
    cross join lateral (
      with change as materialized (
        -- until_day is null where it is as it stayed.
        select usage_date, from_day, until_day, came_late, sum(final_requests) as final_requests,
          sum(final_hours) as final_hours, sum(abs(final_requests - requests)) as wrong_requests,
          sum(abs(final_hours - hours)) as wrong_hours
        from (
          select r.usage_date, r.revision = 1 and r.restates as came_late,
            (r.last_changed_at at time zone 'UTC')::date - r.usage_date as from_day, null::integer as until_day,
            coalesce(r.requests, 0) as requests, coalesce(r.requests, 0) as final_requests,
            coalesce(r.hours, 0) as hours, coalesce(r.hours, 0) as final_hours
          from usage_export.snapshot_row r
          where r.series_id = s.series_id
          union all
          select old.usage_date, old.revision = 1 and old.restates,
            (old.last_changed_at at time zone 'UTC')::date - old.usage_date,
            (old.superseded_at at time zone 'UTC')::date - old.usage_date,
            coalesce(old.requests, 0), coalesce(r.requests, 0), coalesce(old.hours, 0), coalesce(r.hours, 0)
          from usage_export.superseded_row old
          join usage_export.snapshot_row r using (series_id, usage_date, group_id)
          where old.series_id = s.series_id
        ) changes
        group by usage_date, from_day, until_day, came_late
      ), day as (
        select sl.usage_date, case when min(c.from_day) = 0 then 0 else 1 end as first_read
        from usage_export.slice sl
        left join change c using (usage_date)
        where sl.series_id = s.series_id and sl.closed_at < (sl.usage_date + 2)::timestamp at time zone 'UTC'
          and usage_export.finality(sl.usage_date, s.window_days, sl.closed_at, now()) = 'final'
        group by sl.usage_date
      ), step as materialized (
        select metric.metric, edge.days_after, edge.final, edge.wrong, edge.days
        from day d
        left join change c using (usage_date)
        cross join lateral (values
          ('requests', coalesce(c.final_requests, 0), coalesce(c.wrong_requests, 0)),
          ('hours', coalesce(c.final_hours, 0), coalesce(c.wrong_hours, 0))
        ) as metric (metric, final, wrong)
        cross join lateral (values
          (d.first_read, case when c.until_day is null then metric.final else 0 end, 0, 0),
          -- A group that was not there yet.
          (d.first_read, 0, case when c.came_late then metric.final else 0 end, 0),
          (c.from_day, 0, case when c.came_late then -metric.final else 0 end, 0),
          (greatest(c.from_day, d.first_read), 0, metric.wrong, 0),
          (greatest(c.until_day, d.first_read), 0, -metric.wrong, 0)
        ) as edge (days_after, final, wrong, days)
        where edge.final <> 0 or edge.wrong <> 0
        union all
        select metric, d.first_read, 0, 0, 1 from day d cross join (values ('requests'), ('hours')) as metric (metric)
      )
      select metric, days_after, sum(sum(final)) over so_far as final, sum(sum(wrong)) over so_far as wrong,
        sum(sum(days)) over so_far as days
      from (
        select * from step
        union all
        select metric, days_after, 0, 0, 0
        from (values ('requests'), ('hours')) as metric (metric)
        cross join generate_series(0, (select greatest(s.window_days, max(step.days_after)) from step)) as days_after
      ) steps
      group by metric, days_after
      window so_far as (partition by metric order by days_after)
    ) curve
    where s.superseded_at is null and curve.final > 0
  `.execute(db);
}
