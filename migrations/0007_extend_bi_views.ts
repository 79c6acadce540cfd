// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await createListedKeys(db);
  await extendApiKeys(db);
  await createUsageByKey(db);
  await createRestatementCurve(db);
  await createFocusUsage(db);
  await hastenReconciliation(db);
  // The newest run of each job is what is asked for the most, and for years runs are kept.
  await sql`create index run_newest on usage_export.run (kind, job, started_at)`.execute(db);
  await sql`
    do $$
    begin
      if exists (select from pg_catalog.pg_roles where rolname = 'usage_reader') then
        grant select on bi.usage_by_key, bi.restatement_curve, bi.focus_usage to usage_reader;
      end if;
    end
    $$
  `.execute(db);
}

async function createListedKeys(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.listed_key (
      project_id     text        not null,
      api_key_id     text        not null,
      comment        text        not null,
      -- Sorted; null where the service sent none.
      tags           text[],
      scopes         text[]      not null,
      created_at     timestamptz,
      first_seen_at  timestamptz not null default now(),
      last_seen_at   timestamptz not null default now(),
      -- The list had been read again and it was not there: it was deleted, or the key that reads may not see it any more.
      unlisted_since timestamptz,
      primary key (project_id, api_key_id)
    ) with (fillfactor = 90)
  `.execute(db);
}

async function extendApiKeys(db: Kysely<unknown>): Promise<void> {
  await sql`
    create or replace view bi.api_keys as
    select k.project_id, k.project, k.rotation, k.api_key_id, k.intent_id, k.comment, k.state, k.scopes_granted as scopes,
      k.requested_at, k.created_at, k.active_since, k.draining_since, k.due_for_removal_at, k.retired_at, k.expires_at,
      extract(epoch from now() - k.requested_at)::numeric / 86400 as age_days,
      u.last_seen_in_use, k.note, u.accessor, u.first_seen_in_use,
      (row_number() over (partition by k.rotation order by k.requested_at, k.intent_id))::integer as lineage_order,
      to_json(l.tags)::text as key_tags, l.unlisted_since
    from usage_export.api_key k
    left join usage_export.listed_key l on l.project_id = k.project_id and l.api_key_id = k.api_key_id
    left join (
      select project_id, accessor, min(usage_date) as first_seen_in_use, max(usage_date) as last_seen_in_use
      from bi.usage_by_accessor where requests > 0 group by project_id, accessor
    ) u on u.project_id = k.project_id and u.accessor = k.api_key_id
  `.execute(db);
  await commentColumns(db, "api_keys", {
    accessor:
      "The accessor of stored usage that is this key's identifier; NULL where there is none: usage need not name keys by their identifier",
    first_seen_in_use: "The oldest stored day with usage by this key, a calendar day in UTC; NULL where none is known",
    lineage_order: "Its place among the keys of its rotation, a count from 1 for the oldest",
    key_tags: "The key's tags at the service, a sorted JSON array; NULL where they are not known",
    unlisted_since:
      "Since when the service lists it no more, though it lists others: it was deleted, or is not shown to the key that asks; NULL while it is listed, or where it never was",
  });
}

async function createUsageByKey(db: Kysely<unknown>): Promise<void> {
  await sql`
    create view bi.usage_by_key as
    select u.*, k.rotation, coalesce(k.rotation, u.accessor) as lineage,
      coalesce(nullif(l.comment, ''), k.comment) as key_comment, to_json(l.tags)::text as key_tags
    from bi.usage_by_accessor u
    left join usage_export.api_key k on k.project_id = u.project_id and k.api_key_id = u.accessor
    left join usage_export.listed_key l on l.project_id = u.project_id and l.api_key_id = u.accessor
  `.execute(db);
  await sql`
    comment on view bi.usage_by_key is
    'All usage by API key, one row a project, day and accessor: bi.usage_by_accessor with what is known of the key. By lineage it adds up to one line for all keys of a rotation.'
  `.execute(db);
  // What the columns of both mean is said once.
  await sql`
    do $$
    declare
      shared record;
    begin
      for shared in
        select attname, pg_catalog.col_description(attrelid, attnum) as meaning from pg_catalog.pg_attribute
        where attrelid = 'bi.usage_by_accessor'::regclass and attnum > 0
      loop
        execute format('comment on column bi.usage_by_key.%I is %L', shared.attname, shared.meaning);
      end loop;
    end
    $$
  `.execute(db);
  await commentColumns(db, "usage_by_key", {
    rotation: "The rotation that made the key; NULL where none did",
    lineage:
      "The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it; NULL for no value",
    key_comment: "The key's comment, kept when the key is deleted; NULL where it is not known",
    key_tags:
      "The key's tags at the service, a sorted JSON array, kept when the key is deleted; NULL where they are not known",
  });
}

/**
 * One pass over the history of a series in the order of its primary key, as nearly every row is restated once or twice. It
 * leaves a few sums a day: of the amounts as they stayed, and of what was wrong from one day to another. Running sums of
 * where each begins and ends make the curve.
 */
async function createRestatementCurve(db: Kysely<unknown>): Promise<void> {
  await sql`
    create view bi.restatement_curve as
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
          select c.usage_date, c.revision = 1 and c.restates as came_late,
            (c.seen_at at time zone 'UTC')::date - c.usage_date as from_day,
            (lead(c.seen_at) over revisions at time zone 'UTC')::date - c.usage_date as until_day,
            coalesce(c.requests, 0) as requests, coalesce(last_value(c.requests) over revisions, 0) as final_requests,
            coalesce(c.hours, 0) as hours, coalesce(last_value(c.hours) over revisions, 0) as final_hours
          from usage_export.snapshot_change c
          where c.series_id = s.series_id
          window revisions as (
            partition by c.usage_date, c.group_id order by c.revision
            rows between unbounded preceding and unbounded following
          )
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
  await sql`
    comment on view bi.restatement_curve is
    'How much of a day is known how soon, one row a series, metric and number of days: of all final days that were read by the day after at the latest, the share of their final amounts that was stored as it is now. Days that were first read later say nothing of it and do not count; without such days a series has no row. What the service changes after a day was last read is not known to it.'
  `.execute(db);
  await commentColumns(db, "restatement_curve", {
    project_id: "The service's identifier of the project",
    project: "The project's name in the configuration",
    grouping: "The dimension the usage is grouped by, or none",
    filter: "The filter's name in the configuration",
    metric: "The metric, by the name of its column: requests or hours. The other metrics have no curve",
    days_after:
      "Days from the day of the usage to the day that is looked back from, both in UTC: 0 is the day itself, which is known only where today is read as well",
    known_share:
      "The share of the final amount that was known by the end of that day, 0 to 1. Group by group, so that what moved between groups was not known; an amount that was too high counts like one that was as much too low",
    days: "How many final days it rests on, a count",
  });
}

/** From one grouping a project and day: by accessor where that was read, as a key is what FOCUS calls a resource. */
async function createFocusUsage(db: Kysely<unknown>): Promise<void> {
  await sql`
    create view bi.focus_usage as
    select u.usage_date::timestamp at time zone 'UTC' as "ChargePeriodStart",
      (u.usage_date + 1)::timestamp at time zone 'UTC' as "ChargePeriodEnd",
      'Usage' as "ChargeCategory", m.description as "ChargeDescription",
      m.quantity as "ConsumedQuantity", m.unit as "ConsumedUnit",
      'AI and Machine Learning' as "ServiceCategory", 'Speech processing' as "ServiceName",
      u.project_id as "SubAccountId", u.project as "SubAccountName",
      u.accessor as "ResourceId", u.key_comment as "ResourceName",
      case when u.accessor is not null then 'API key' end as "ResourceType", u.tags as "Tags",
      u.usage_date as "x_UsageDate", m.metric as "x_Metric", u."grouping" as "x_Grouping", u.lineage as "x_Lineage",
      u.finality as "x_Finality", u.revision as "x_Revision", u.last_changed_at as "x_LastChangedAt"
    from (
      select k.project_id, k.project, k.usage_date, 'accessor' as "grouping", k.accessor, k.key_comment, k.lineage,
        (select jsonb_object_agg(tag, true) from json_array_elements_text(k.key_tags::json) as tag) as tags,
        k.hours, k.total_hours, k.agent_hours, k.tokens_in, k.tokens_out, k.tts_characters, k.requests,
        k.finality, k.revision, k.last_changed_at
      from bi.usage_by_key k
      union all
      select t.project_id, t.project, t.usage_date, 'none', null, null, null, null,
        t.hours, t.total_hours, t.agent_hours, t.tokens_in, t.tokens_out, t.tts_characters, t.requests,
        t.finality, t.revision, t.last_changed_at
      from bi.usage_total t
      where not exists (
        select from usage_export.series s join usage_export.slice sl using (series_id)
        where s.project_id = t.project_id and s."grouping" = 'accessor' and s.filter_key = '{}' and s.superseded_at is null
          and sl.usage_date = t.usage_date and sl.fetch_no > 0
      )
    ) u
    cross join lateral (values
      ('hours', u.hours, 'Hours', 'Hours of audio'),
      ('total_hours', u.total_hours, 'Hours', 'Total hours'),
      ('agent_hours', u.agent_hours, 'Hours', 'Hours of agent connections'),
      ('tokens_in', u.tokens_in, 'Tokens', 'Tokens received'),
      ('tokens_out', u.tokens_out, 'Tokens', 'Tokens produced'),
      ('tts_characters', u.tts_characters, 'Characters', 'Characters turned into speech'),
      ('requests', u.requests, 'Requests', 'Requests')
    ) as m (metric, quantity, unit, description)
    where m.quantity > 0
  `.execute(db);
  await sql`
    comment on view bi.focus_usage is
    'All usage in the column names of FOCUS 1.1 (focus.finops.org), one row a project, day, API key and metric; without API key on days that were not read by accessor, so that nothing is there twice. Aligned, not conformant: it has no prices and costs, no currency, no billing account and billing period, no provider, publisher and invoice issuer, no SKU and no region, as the usage says nothing of them, and not the metrics of extra_metrics, whose units are not known. Add up one x_Metric at a time: hours, total_hours and agent_hours overlap.'
  `.execute(db);
  await commentColumns(db, "focus_usage", {
    ChargePeriodStart: "The first moment of the day of the usage, midnight in UTC",
    ChargePeriodEnd: "The first moment after the day of the usage, the next midnight in UTC: it does not belong to it",
    ChargeCategory: "Always Usage",
    ChargeDescription: "What was consumed, in words",
    ConsumedQuantity: "How much, in ConsumedUnit; always above 0, as what was not used has no row",
    ConsumedUnit: "Hours, Tokens, Characters or Requests",
    ServiceCategory: "Always AI and Machine Learning",
    ServiceName: "Always Speech processing: the usage names no service",
    SubAccountId: "The service's identifier of the project",
    SubAccountName: "The project's name in the configuration",
    ResourceId:
      "The accessor, which is the API key that was used; NULL for no value, and where x_Grouping is none. Unique within the project",
    ResourceName: "The API key's comment; NULL where it is not known",
    ResourceType: "API key, or NULL without ResourceId",
    Tags: "The API key's tags at the service as a JSON object, each true, as they have no values; NULL where there are none or they are not known. Not the tags of requests",
    x_UsageDate: "The day of the usage, a calendar day in UTC; the column to narrow a query by",
    x_Metric: "The metric, by the name of its column in bi.usage_total",
    x_Grouping: "Which series the row is from: accessor, or none where the day was not read by accessor",
    x_Lineage: "The rotation that made the API key, whichever of its keys was used; the accessor itself where none did",
    x_Finality:
      "open: the day was not over when it was read; settling: it is still read again; final: it is not read again",
    x_Revision: "How many times the numbers of this key and day have been written: 1 until one changes",
    x_LastChangedAt: "When a number of this key and day last changed",
  });
}

const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];

/** The same rows as before, added up slice by slice, so that asking for a few days reads those days only. */
async function hastenReconciliation(db: Kysely<unknown>): Promise<void> {
  const sumsOf = (slice: string) => sql`
    cross join lateral (
      select ${sql.join(METRICS.map((name) => sql`sum(r.${sql.ref(name)}) as ${sql.ref(name)}`))}
      from usage_export.snapshot_row r
      where r.series_id = ${sql.ref(`${slice}.series_id`)} and r.usage_date = ${sql.ref(`${slice}.usage_date`)} and not r.gone
    ) ${sql.ref(`${slice}_sum`)}
  `;
  const metrics = METRICS.map(
    (name) => sql`(${sql.lit(name)}, ${sql.ref(`t_sum.${name}`)}, ${sql.ref(`g_sum.${name}`)})`,
  );
  await sql`
    create or replace view bi.reconciliation as
    select gs.project_id, gs.project, gs."grouping", g.usage_date, m.metric, m.total, m.sum_of_groups,
      m.sum_of_groups - m.total as difference, t.fetched_at as total_fetched_at, g.fetched_at as groups_fetched_at
    from usage_export.series gs
    join usage_export.slice g on g.series_id = gs.series_id and g.fetch_no > 0
    join usage_export.series ts on ts.project_id = gs.project_id and ts."grouping" = 'none' and ts.filter_key = '{}'
      and ts.superseded_at is null
    join usage_export.slice t on t.series_id = ts.series_id and t.usage_date = g.usage_date and t.fetch_no > 0
    ${sumsOf("t")}
    ${sumsOf("g")}
    cross join lateral (
      select metric, case when t.rows = 0 then 0 else total end as total,
        case when g.rows = 0 then 0 else sum_of_groups end as sum_of_groups
      from (values ${sql.join(metrics)}) as v (metric, total, sum_of_groups)
    ) m
    where gs."grouping" not in ('none', 'tags', 'feature_set') and gs.filter_key = '{}' and gs.superseded_at is null
      and abs(m.sum_of_groups - m.total) > 0.000000001 * greatest(abs(m.total), abs(m.sum_of_groups), 1)
  `.execute(db);
}

async function commentColumns(
  db: Kysely<unknown>,
  view: string,
  columns: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [column, text] of Object.entries(columns)) {
    await sql`comment on column ${sql.id("bi", view, column)} is ${sql.lit(text)}`.execute(db);
  }
}
