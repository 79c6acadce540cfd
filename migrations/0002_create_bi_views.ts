// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

/** Columns that every usage view shares, with the comment a BI tool shows. */
const SERIES_COLUMNS = {
  project_id: "The service's identifier of the project",
  project: "The project's name in the configuration",
  usage_date: "The day of the usage, a calendar day in UTC",
};

const METRIC_COLUMNS = {
  hours: "Hours of audio, in hours; NULL where the service sent none",
  total_hours: "Total hours, in hours, as the service counts them; NULL where it sent none",
  agent_hours: "Hours of agent connections, in hours; NULL where the service sent none",
  tokens_in: "Tokens received, a count; NULL where the service sent none",
  tokens_out: "Tokens produced, a count; NULL where the service sent none",
  tts_characters: "Characters turned into speech, a count; NULL where the service sent none",
  requests: "Requests, a count; NULL where the service sent none",
  extra_metrics: "Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none",
};

const ROW_COLUMNS = {
  finality:
    "open: the day was not over when it was read; settling: it is still read again; final: it is not read again",
  revision: "How many times this row has been written: 1 until a number changes",
  first_seen_at: "When this group was first stored for this day",
  last_changed_at: "When a number of this row last changed",
};

const DIMENSIONS = {
  accessor: "The public identifier of the API key that was used",
  deployment: "The deployment type: self-hosted, hosted, beta",
  endpoint: "The endpoint used: listen, speak, agent, read",
  feature_set: "The collection of features used; a sorted JSON array where there were several",
  method: "The processing method: sync, async, streaming",
  model: "The model used; a sorted JSON array where there were several",
  tags: "The set of tags of the requests, a sorted JSON array; its amounts are not split over single tags",
};

const FILTERED_COLUMNS = {
  ...SERIES_COLUMNS,
  grouping: "The dimension the usage is grouped by, or none",
  filter: "The filter's name in the configuration",
  group_value: "The value of the grouped dimension; NULL for no value",
  ...METRIC_COLUMNS,
  ...ROW_COLUMNS,
};

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create schema bi`.execute(db);
  await sql`comment on schema bi is 'Usage of the speech service, for reading. Days are calendar days in UTC. Never add up across groupings or filters: each is the same usage counted again.'`.execute(
    db,
  );
  await createFinality(db);
  await createUsageViews(db);
  await createUsageAsOf(db);
  await createCoverageViews(db);
  await createHistoryViews(db);
  await grantToReader(db);
}

/** What is known of a day at a moment, from its date, the window that reads it again, and its first reading after it was over. */
async function createFinality(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function usage_export.finality(usage_date date, window_days integer, closed_at timestamptz, seen_from timestamptz)
    returns text language sql immutable parallel safe as $$
      select case
        when seen_from < (usage_date + 1)::timestamp at time zone 'UTC' then 'open'
        when closed_at is null or closed_at > seen_from then 'open'
        when usage_date + window_days >= (seen_from at time zone 'UTC')::date then 'settling'
        else 'final'
      end
    $$
  `.execute(db);
}

async function createUsageViews(db: Kysely<unknown>): Promise<void> {
  await sql`
    create view usage_export.visible_row as
    select s.project_id, s.project, r.usage_date, s."grouping", s.filter, s.filter_key, g.display as group_value,
      r.hours, r.total_hours, r.agent_hours, r.tokens_in, r.tokens_out, r.tts_characters, r.requests, r.extra_metrics,
      usage_export.finality(r.usage_date, s.window_days, sl.closed_at, now()) as finality,
      r.revision, r.first_seen_at, r.last_changed_at
    from usage_export.snapshot_row r
    join usage_export.series s using (series_id)
    join usage_export.slice sl using (series_id, usage_date)
    join usage_export.group_value g using (group_id)
    where not r.gone and s.superseded_at is null
  `.execute(db);

  const metrics = sql.raw(Object.keys({ ...METRIC_COLUMNS, ...ROW_COLUMNS }).join(", "));
  await sql`
    create view bi.usage_total as
    select project_id, project, usage_date, ${metrics}
    from usage_export.visible_row where "grouping" = 'none' and filter_key = '{}'
  `.execute(db);
  await comment(db, "usage_total", "All usage, one row a project and day.", {
    ...SERIES_COLUMNS,
    ...METRIC_COLUMNS,
    ...ROW_COLUMNS,
  });

  for (const [dimension, meaning] of Object.entries(DIMENSIONS)) {
    await sql`
      create view ${sql.id("bi", `usage_by_${dimension}`)} as
      select project_id, project, usage_date, group_value as ${sql.id(dimension)}, ${metrics}
      from usage_export.visible_row where "grouping" = ${sql.lit(dimension)} and filter_key = '{}'
    `.execute(db);
    await comment(db, `usage_by_${dimension}`, `All usage by ${dimension}, one row a project, day and value.`, {
      ...SERIES_COLUMNS,
      [dimension]: `${meaning}; NULL for no value`,
      ...METRIC_COLUMNS,
      ...ROW_COLUMNS,
    });
  }

  await sql`
    create view bi.usage_filtered as
    select project_id, project, usage_date, "grouping", filter, group_value, ${metrics}
    from usage_export.visible_row where filter_key <> '{}'
  `.execute(db);
  await comment(
    db,
    "usage_filtered",
    "Usage under a filter, one row a project, grouping, filter, day and value. Filters overlap: never add them up.",
    FILTERED_COLUMNS,
  );
}

/**
 * Read from the history: of each row the change that had been seen and not been followed yet. One pass in the order of the
 * primary key: with a choice of the newest change in its place, and a join for the first, the planner expected a few rows
 * where there are a million, and looked up each in a nested loop.
 */
async function createUsageAsOf(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function bi.usage_as_of(as_of timestamptz)
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
      from (
        select *, first_value(seen_at) over changes as first_seen_at, lead(seen_at) over changes as followed_at
        from usage_export.snapshot_change
        window changes as (partition by series_id, usage_date, group_id order by revision)
      ) c
      join usage_export.series s using (series_id)
      join usage_export.slice sl using (series_id, usage_date)
      join usage_export.group_value g using (group_id)
      where c.seen_at <= as_of and (c.followed_at is null or c.followed_at > as_of) and c.kind <> 'gone'
        and (s.superseded_at is null or s.superseded_at > as_of)
    $$
  `.execute(db);
  await sql`
    comment on function bi.usage_as_of(timestamptz) is
    'What the usage views showed at that moment: every series, filtered or not, with the columns of bi.usage_filtered. An unfiltered series carries the name of its filter without conditions.'
  `.execute(db);
}

async function createCoverageViews(db: Kysely<unknown>): Promise<void> {
  // A day is due once its job's next alarm is past; until then yesterday is not missing, it is early.
  await sql`
    create view usage_export.due_series as
    select *, case when now() >= next_due_at then greatest(due_through, (now() at time zone 'UTC')::date - 1)
              else due_through end as due_until
    from usage_export.series
    where superseded_at is null and retired_at is null and due_from is not null
  `.execute(db);

  await sql`
    create view bi.coverage as
    select s.project_id, s.project, s."grouping", s.filter, sl.usage_date, sl.status,
      usage_export.finality(sl.usage_date, s.window_days,
        coalesce(sl.closed_at, case when sl.fetched_at is null then '-infinity'::timestamptz end), now()) as finality,
      sl.fetched_at, sl.rows, sl.error
    from usage_export.slice sl
    join usage_export.series s using (series_id)
    -- What is configured no more is not read again, so a failure of its last night would stay for ever.
    where s.superseded_at is null and (s.retired_at is null or sl.status = 'complete')
    union all
    select s.project_id, s.project, s."grouping", s.filter, day::date, 'missing',
      usage_export.finality(day::date, s.window_days, '-infinity', now()), null, 0, null
    from usage_export.due_series s
    cross join generate_series(s.due_from::timestamp, s.due_until::timestamp, interval '1 day') as day
    where not exists (
      select from usage_export.slice sl where sl.series_id = s.series_id and sl.usage_date = day::date
    )
  `.execute(db);
  await comment(
    db,
    "coverage",
    "One row a slice: a series (project, grouping, filter) on one day, and whether its numbers can be relied on.",
    {
      project_id: SERIES_COLUMNS.project_id,
      project: SERIES_COLUMNS.project,
      grouping: FILTERED_COLUMNS.grouping,
      filter: FILTERED_COLUMNS.filter,
      usage_date: SERIES_COLUMNS.usage_date,
      status:
        "complete: the newest reading is stored; suspect: the newest answer was empty and the rows before it are kept; failed: the newest reading failed, and the rows of the last good one are kept; missing: due and never read",
      finality: ROW_COLUMNS.finality,
      fetched_at: "When the rows that are shown were read; NULL while there was no good reading",
      rows: "How many rows the slice has, a count",
      error: "Why the slice is failed or suspect; NULL when it is complete",
    },
  );

  await sql`
    create view bi.coverage_gaps as
    select project_id, project, "grouping", filter, status, min(usage_date) as from_date, max(usage_date) as to_date,
      count(*)::integer as days, (array_agg(error order by usage_date desc))[1] as error
    from (
      select c.*, c.usage_date - (row_number() over (
        partition by project_id, "grouping", filter, status order by usage_date))::integer as stretch
      from bi.coverage c where status in ('missing', 'failed')
    ) stretches
    group by project_id, project, "grouping", filter, status, stretch
  `.execute(db);
  await comment(db, "coverage_gaps", "The stretches of days that are missing or failed, one row a stretch.", {
    project_id: SERIES_COLUMNS.project_id,
    project: SERIES_COLUMNS.project,
    grouping: FILTERED_COLUMNS.grouping,
    filter: FILTERED_COLUMNS.filter,
    status: "missing: due and never read; failed: the newest reading failed",
    from_date: "The first day of the stretch",
    to_date: "The last day of the stretch",
    days: "How many days the stretch has, a count",
    error: "Why the newest day of the stretch failed; NULL when it is missing",
  });

  await sql`
    create view bi.freshness as
    select s.project_id, s.project, s."grouping", s.filter,
      coalesce(
        (select min(c.usage_date) - 1 from bi.coverage c
          where c.project_id = s.project_id and c."grouping" = s."grouping" and c.filter = s.filter
            and c.usage_date between s.due_from and s.due_until and c.fetched_at is null),
        s.due_until
      ) as fresh_through,
      s.due_from, s.due_until as due_through,
      (select max(sl.fetched_at) from usage_export.slice sl where sl.series_id = s.series_id) as fetched_at
    from usage_export.due_series s
  `.execute(db);
  await comment(db, "freshness", "Per series, the newest day up to which nothing is missing.", {
    project_id: SERIES_COLUMNS.project_id,
    project: SERIES_COLUMNS.project,
    grouping: FILTERED_COLUMNS.grouping,
    filter: FILTERED_COLUMNS.filter,
    fresh_through:
      "The newest day up to which every due day has been read at least once; the day before due_from while none has",
    due_from: "The first day that was ever due",
    due_through: "The newest day that is due",
    fetched_at: "When a day of the series was last read well; NULL while none was",
  });
}

async function createHistoryViews(db: Kysely<unknown>): Promise<void> {
  const names = Object.keys(METRIC_COLUMNS).filter((name) => name !== "extra_metrics");
  const pairs = sql.join([
    ...names.map((name) => sql`(${sql.lit(name)}, ${sql.ref(`old.${name}`)}::text, ${sql.ref(`c.${name}`)}::text)`),
    sql`('extra_metrics', old.extra_metrics::text, c.extra_metrics::text)`,
  ]);
  await sql`
    create view bi.restatements as
    select s.project_id, s.project, s."grouping", s.filter, c.usage_date, g.display as group_value, c.kind, m.metric,
      case when m.metric <> 'extra_metrics' then m.old_value::numeric end as old_value,
      case when m.metric <> 'extra_metrics' then m.new_value::numeric end as new_value,
      case when m.metric = 'extra_metrics' then m.old_value::jsonb end as old_extra_metrics,
      case when m.metric = 'extra_metrics' then m.new_value::jsonb end as new_extra_metrics,
      c.revision, c.seen_at, (c.seen_at at time zone 'UTC')::date - c.usage_date as days_late
    from usage_export.snapshot_change c
    join usage_export.series s using (series_id)
    join usage_export.group_value g using (group_id)
    left join usage_export.snapshot_change old
      on old.series_id = c.series_id and old.usage_date = c.usage_date and old.group_id = c.group_id
      and old.revision = c.revision - 1
    cross join lateral (values ${pairs}) as m (metric, old_value, new_value)
    where c.restates and s.superseded_at is null and m.old_value is distinct from m.new_value
  `.execute(db);
  await comment(db, "restatements", "Every change of a number after its day had first been stored, one row a metric.", {
    ...SERIES_COLUMNS,
    grouping: FILTERED_COLUMNS.grouping,
    filter: FILTERED_COLUMNS.filter,
    group_value: FILTERED_COLUMNS.group_value,
    kind: "changed: the number is another; appeared: the group was not there before; gone: the group is not there any more",
    metric: "The metric that changed, by the name of its column",
    old_value: "The number before; NULL where there was none",
    new_value: "The number after; NULL where there is none",
    old_extra_metrics: "For the metric extra_metrics, the object before",
    new_extra_metrics: "For the metric extra_metrics, the object after",
    revision: "The row's revision with the new number",
    seen_at: "When the change was stored",
    days_late: "Days from the day of the usage to the day the change was seen, both in UTC",
  });

  const sums = sql.join(names.map((name) => sql`(${sql.lit(name)}, ${sql.ref(`t.${name}`)}, ${sql.ref(`g.${name}`)})`));
  const totals = sql.join(names.map((name) => sql`sum(r.${sql.ref(name)}) as ${sql.ref(name)}`));
  // The service adds doubles up, so the last digits of two sums of the same usage may differ.
  await sql`
    create view bi.reconciliation as
    with sum_of_slice as (
      select sl.series_id, sl.usage_date, sl.fetched_at, sl.rows, ${totals}
      from usage_export.slice sl
      join usage_export.series s using (series_id)
      left join usage_export.snapshot_row r
        on r.series_id = sl.series_id and r.usage_date = sl.usage_date and not r.gone
      where s.superseded_at is null and s.filter_key = '{}' and s."grouping" not in ('tags', 'feature_set')
        and sl.fetch_no > 0
      group by sl.series_id, sl.usage_date
    )
    select gs.project_id, gs.project, gs."grouping", g.usage_date, m.metric, m.total, m.sum_of_groups,
      m.sum_of_groups - m.total as difference, t.fetched_at as total_fetched_at, g.fetched_at as groups_fetched_at
    from sum_of_slice t
    join usage_export.series ts on ts.series_id = t.series_id and ts."grouping" = 'none'
    join usage_export.series gs on gs.project_id = ts.project_id and gs."grouping" <> 'none' and gs.filter_key = '{}'
      and gs.superseded_at is null
    join sum_of_slice g on g.series_id = gs.series_id and g.usage_date = t.usage_date
    cross join lateral (
      select metric, case when t.rows = 0 then 0 else total end as total,
        case when g.rows = 0 then 0 else sum_of_groups end as sum_of_groups
      from (values ${sums}) as v (metric, total, sum_of_groups)
    ) m
    where abs(m.sum_of_groups - m.total) > 0.000000001 * greatest(abs(m.total), abs(m.sum_of_groups), 1)
  `.execute(db);
  await comment(
    db,
    "reconciliation",
    "Days on which the sum over a grouping differs from the total; empty when the service agrees with itself. Never for tags, feature_set or a filter, which need not add up.",
    {
      project_id: SERIES_COLUMNS.project_id,
      project: SERIES_COLUMNS.project,
      grouping: FILTERED_COLUMNS.grouping,
      usage_date: SERIES_COLUMNS.usage_date,
      metric: "The metric that differs, by the name of its column",
      total: "The number of the ungrouped total",
      sum_of_groups: "The sum over the groups",
      difference: "sum_of_groups - total",
      total_fetched_at: "When the total was read",
      groups_fetched_at: "When the groups were read: a day that is still settling may have changed in between",
    },
  );

  await sql`
    create view bi.runs as
    select run_id, kind, job, trigger, scheduled_for, started_at, finished_at,
      case when status = 'running' and heartbeat_at < now() - interval '1 minute' then 'interrupted' else status end
        as status,
      requests, slices_planned, slices_complete, slices_suspect, slices_failed, rows_changed, error
    from usage_export.run
  `.execute(db);
  await comment(db, "runs", "One row a run of a job.", {
    run_id: "The run's identifier",
    kind: "export or rotation",
    job: "The job's name in the configuration",
    trigger: "What started it: schedule, manual, catchup or backfill",
    scheduled_for: "The moment it was scheduled for; NULL for a manual run",
    started_at: "When it started",
    finished_at: "When it ended; NULL while it runs",
    status:
      "running; ok: everything was stored; failed: something was not; stopped: a signal ended it; interrupted: it ended without saying so",
    requests: "Usage requests it made, a count",
    slices_planned: "Slices it was to read, a count",
    slices_complete: "Slices that are complete by it, a count",
    slices_suspect: "Slices whose answer was empty where rows had been, a count",
    slices_failed: "Slices that failed, a count",
    rows_changed: "Rows that appeared, changed or went, a count",
    error: "What went wrong first; NULL when nothing did",
  });
}

/** The role is one for all databases of a server, so it may exist; and not every owner of a database may create one. */
async function grantToReader(db: Kysely<unknown>): Promise<void> {
  await sql`
    do $$
    begin
      if not exists (select from pg_catalog.pg_roles where rolname = 'usage_reader') then
        create role usage_reader nologin;
      end if;
    exception
      when duplicate_object or unique_violation then null;
      when insufficient_privilege then
        raise warning 'role usage_reader was not created: this user may not create roles; create it and run the grants of the README';
    end
    $$
  `.execute(db);
  await sql`
    do $$
    begin
      if exists (select from pg_catalog.pg_roles where rolname = 'usage_reader') then
        grant usage on schema bi to usage_reader;
        grant select on all tables in schema bi to usage_reader;
      end if;
      revoke execute on function bi.usage_as_of(timestamptz) from public;
      if exists (select from pg_catalog.pg_roles where rolname = 'usage_reader') then
        grant execute on function bi.usage_as_of(timestamptz) to usage_reader;
      end if;
    end
    $$
  `.execute(db);
}

async function comment(
  db: Kysely<unknown>,
  view: string,
  meaning: string,
  columns: Readonly<Record<string, string>>,
): Promise<void> {
  await sql`comment on view ${sql.id("bi", view)} is ${sql.lit(meaning)}`.execute(db);
  for (const [column, text] of Object.entries(columns)) {
    await sql`comment on column ${sql.id("bi", view, column)} is ${sql.lit(text)}`.execute(db);
  }
}
