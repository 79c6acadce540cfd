// Reads why usage, or what the service charges, changed from one period to another: bi.usage_change and bi.billed_change, added up over
// projects. Only the largest groups are listed; the others are one sum.

import { type RawBuilder, sql } from "kysely";
import type { MetricChange, UsageChange } from "../../report/usage-change.ts";
import { dayCount, type Window } from "../../usage/days.ts";
import type { Source, UsageGrouping } from "../../usage/series.ts";
import type { Tx } from "../connection/transaction.ts";

export type ChangeQuestion = {
  readonly period: Window;
  readonly before: Window;
  /** Names or ids; undefined for all. */
  readonly projects?: readonly string[] | undefined;
  readonly metrics: readonly string[];
  /** Besides the total; undefined for all. */
  readonly groupings?: readonly UsageGrouping[] | undefined;
  /** How many groups of each grouping are listed. The others are one sum. */
  readonly groupsMax: number;
};

/** Projects without any usage in the two periods, and metrics that the service did not send, are not in the answer. */
export async function readUsageChange(tx: Tx, question: ChangeQuestion): Promise<UsageChange> {
  const { projects, metrics, groupings } = question;
  const rows = sql`
    select project_id, project, metric, "grouping", part, group_value, amount_before, amount_after, change, first_day, last_day,
      days_compared, total_from
    from bi.usage_change(
      ${periods(question)}, ${projects ?? null}::text[], ${metrics}::text[], ${groupings ? ["none", ...groupings] : null}::text[]
    )
  `;
  return readChange(tx, question, { source: "usage", rows });
}

/** As usage, with one metric. */
export async function readBilledChange(tx: Tx, question: Omit<ChangeQuestion, "metrics">): Promise<UsageChange> {
  const { projects, groupings } = question;
  const rows = sql`
    select project_id, project, 'cost' as metric, "grouping", part, group_value, amount_before, amount_after, change, first_day, last_day,
      days_compared, total_from
    from bi.billed_change(${periods(question)}, ${projects ?? null}::text[], ${groupings ? [...groupings, "line_item"] : null}::text[])
  `;
  return readChange(tx, { ...question, metrics: ["cost"] }, { source: "billing", rows });
}

function periods({ period, before }: Pick<ChangeQuestion, "period" | "before">): RawBuilder<unknown> {
  return sql`${period.start}::date, ${period.end}::date, ${before.start}::date, ${before.end}::date`;
}

/** `rows` are those of bi.usage_change, whose columns both functions have. */
type ChangeSource = { readonly source: Source; readonly rows: RawBuilder<unknown> };

async function readChange(tx: Tx, question: ChangeQuestion, source: ChangeSource): Promise<UsageChange> {
  const { period, before, metrics } = question;
  const [row] = await readChangeRow(tx, question, source);
  // For each series: days of two projects are counted twice, as in `daysCompared`.
  const days = Math.max(dayCount(period), dayCount(before));
  return {
    period,
    before,
    projects: row?.projects ?? [],
    lackingDays: row?.lackingDays ?? [],
    notFinalDays: row?.notFinalDays ?? [],
    metrics: (row?.metrics ?? [])
      .toSorted((a, b) => metrics.indexOf(a.metric) - metrics.indexOf(b.metric))
      .map(({ seriesCount, ...metric }) => ({
        ...metric,
        daysInAll: days * seriesCount,
        breakdowns: metric.breakdowns.map(({ seriesCount, ...breakdown }) => ({
          ...breakdown,
          daysInAll: days * seriesCount,
        })),
      })),
  };
}

type Counted<T> = Omit<T, "daysInAll"> & { readonly seriesCount: number };

type ChangeRow = Pick<UsageChange, "projects" | "lackingDays" | "notFinalDays"> & {
  readonly metrics: readonly Counted<
    Omit<MetricChange, "breakdowns"> & { readonly breakdowns: readonly Counted<MetricChange["breakdowns"][number]>[] }
  >[];
};

async function readChangeRow(
  tx: Tx,
  question: ChangeQuestion,
  { source, rows: changeRows }: ChangeSource,
): Promise<readonly ChangeRow[]> {
  const { rows } = await sql<ChangeRow>`
    with change as materialized (
      select *, amount_before as before, amount_after as after from (${changeRows}) one
    ), compared as (
      select metric, "grouping", sum(days_compared)::integer as days, count(*)::integer as series
      from (select distinct project_id, metric, "grouping", days_compared from change) one
      group by metric, "grouping"
    ), ${shownParts(question.groupsMax)}, breakdown as (
      select s.metric, json_agg(json_build_object(
        'grouping', s."grouping", 'daysCompared', c.days, 'seriesCount', c.series,
        'newGroups', s.new_groups, 'vanishedGroups', s.vanished_groups, 'parts', s.parts
      ) order by array_position(
        array['project', 'line_item', 'model', 'accessor', 'tags', 'endpoint', 'method', 'deployment', 'feature_set'], s."grouping"
      )) as breakdowns
      from shown s
      join compared c
        on c.metric = s.metric and c."grouping" = case when s."grouping" = 'project' then 'none' else s."grouping" end
      group by s.metric
    ), total as (
      select t.metric, json_build_object(
        'metric', t.metric, ${amounts(sql``)},
        'compared', json_build_object(${amounts(sql`filter (where part = 'group')`)}),
        'notCompared', case when bool_or(part = 'days not compared')
          then json_build_object(${amounts(sql`filter (where part = 'days not compared')`)}) end,
        'daysCompared', min(c.days), 'seriesCount', min(c.series),
        'breakdowns', coalesce((select breakdowns from breakdown b where b.metric = t.metric), '[]')
      ) as metric_change
      from change t
      join compared c on c.metric = t.metric and c."grouping" = 'none'
      where t."grouping" = 'none'
      group by t.metric
    ), ${daysOfTotal(question, source)}
    select
      (select coalesce(json_agg(metric_change), '[]') from total) as metrics,
      (select coalesce(json_agg(distinct project order by project), '[]') from change) as projects,
      (select coalesce(json_agg(day order by day), '[]') from day where is_lacking) as "lackingDays",
      (select coalesce(json_agg(day order by day), '[]') from day where is_not_final) as "notFinalDays"
  `.execute(tx);
  return rows;
}

function amounts(filter: RawBuilder<unknown>): RawBuilder<unknown> {
  const text = (amount: string) => sql`trim_scale(coalesce(sum(${sql.ref(amount)}) ${filter}, 0))::text`;
  return sql`'before', ${text("before")}, 'after', ${text("after")}, 'change', ${text("change")}`;
}

/** Defines `shown`: the parts of each metric and grouping. The groups beyond `groupsMax` are one part. */
function shownParts(groupsMax: number): RawBuilder<unknown> {
  return sql`scope as materialized (
      select count(distinct project_id) > 1 as has_several_projects from change
    ), part_of_project as (
      select project_id, project, metric, "grouping", part, group_value, before, after, change, first_day, last_day
      from change where "grouping" <> 'none'
      union all
      -- A project that was not read by a grouping has no groups there, but its usage is in the total.
      select t.project_id, t.project, t.metric, g."grouping", case t.part when 'group' then 'not attributed' else t.part end,
        null, t.before, t.after, t.change, null, null
      from change t
      join (select distinct metric, "grouping" from change where "grouping" <> 'none') g using (metric)
      where t."grouping" = 'none' and (t.before <> 0 or t.after <> 0) and not exists (
        select from change c where c.project_id = t.project_id and c.metric = t.metric and c."grouping" = g."grouping"
      )
    ), part as (
      -- Keys of two projects may have the same name, and comments of their own.
      select metric, "grouping", part, group_value as "group",
        case when "grouping" = 'accessor' and part = 'group' then project_id end as project_id,
        case when "grouping" = 'accessor' and part = 'group' and (select has_several_projects from scope) then project end as project,
        sum(before) as before, sum(after) as after, sum(change) as change, min(first_day) as first_day, max(last_day) as last_day
      from part_of_project
      group by 1, 2, 3, 4, 5, 6
      union all
      select metric, 'project', part, case when part = 'group' then project end, null, null, sum(before), sum(after), sum(change), null, null
      from change
      where "grouping" = 'none' and (select has_several_projects from scope)
      group by 1, 2, 3, 4
    ), ranked as (
      select *, least(${groupsMax}::integer + 1, row_number() over (
          partition by metric, "grouping", part
          order by abs(change) desc, greatest(before, after) desc, "group" collate "C" nulls last, project collate "C",
            project_id collate "C"
        )) as rank,
        case
          when part <> 'group' then null
          when change = 0 then 'same'
          when coalesce(before, 0) = 0 then 'new'
          when coalesce(after, 0) = 0 then 'vanished'
          else 'changed'
        end as status
      from part
    ), summed as (
      select metric, "grouping", case when rank > ${groupsMax} then 'others' else part end as part, rank,
        -- Each rank but the last is one group.
        case when rank <= ${groupsMax} then max("group") end as "group",
        case when rank <= ${groupsMax} then max(project) end as project,
        case when rank <= ${groupsMax} then max(project_id) end as project_id,
        case when rank <= ${groupsMax} then max(status) end as status,
        count(*) as groups, count(*) filter (where status = 'new') as new_groups,
        count(*) filter (where status = 'vanished') as vanished_groups,
        sum(before) as before, sum(after) as after, sum(change) as change, min(first_day) as first_day, max(last_day) as last_day
      from ranked
      group by metric, "grouping", ranked.part, rank
    ), shown as (
      select metric, "grouping", sum(new_groups) as new_groups, sum(vanished_groups) as vanished_groups,
        json_agg(json_build_object(
          'part', part, 'group', "group", 'project', project, 'status', status, 'groups', groups,
          'comment', case when "grouping" = 'accessor'
            then (
              select k.comment from bi.listed_keys k
              where k.project_id = summed.project_id and k.api_key_id = "group" and trim(k.comment) <> ''
            ) end,
          'before', trim_scale(coalesce(before, 0))::text, 'after', trim_scale(coalesce(after, 0))::text,
          'change', trim_scale(change)::text, 'firstDay', first_day, 'lastDay', last_day
        ) order by array_position(array['group', 'others', 'not attributed', 'days not compared'], part), rank) as parts
      from summed group by metric, "grouping"
    )`;
}

/**
 * Defines `day`: each day of the two periods, and whether the total of some project was not read, or may still change. `total_from` is
 * the grouping whose sum is the total of the project.
 */
function daysOfTotal({ period, before }: ChangeQuestion, source: Source): RawBuilder<unknown> {
  return sql`day as (
      select d.day, bool_or(c.usage_date is null) as is_lacking,
        bool_or(c.status <> 'complete' or c.finality <> 'final') as is_not_final
      from (select distinct project_id, total_from from change) s
      cross join (
        select ${before.start}::date + n as day from generate_series(0, ${before.end}::date - ${before.start}::date) n
        union
        select ${period.start}::date + n from generate_series(0, ${period.end}::date - ${period.start}::date) n
      ) d
      left join bi.coverage c on c.source = ${source} and c.project_id = s.project_id and c."grouping" = s.total_from and c.unfiltered
        and c.usage_date = d.day
        and c.usage_date >= least(${before.start}::date, ${period.start}::date)
        and c.usage_date <= greatest(${before.end}::date, ${period.end}::date)
        -- The same condition as in bi.usage_change and bi.billed_change, so that the days named here are those that they left out.
        and c.fetched_at is not null and c.status <> 'missing'
        and not exists (
          select from bi.cost_by_group cost
          where ${source} = 'billing' and cost.project_id = c.project_id and cost."grouping" = c."grouping"
            and cost.usage_date = c.usage_date and cost.amount is null
            and cost.usage_date >= least(${before.start}::date, ${period.start}::date)
            and cost.usage_date <= greatest(${before.end}::date, ${period.end}::date)
        )
      group by d.day
    )`;
}

export type StoredProject = {
  readonly id: string;
  readonly name: string;
  /** Whether any of its series is still read. */
  readonly isActive: boolean;
};

/** Every project of which usage or billing was ever asked for. */
export async function storedProjects(tx: Tx): Promise<readonly StoredProject[]> {
  const { rows } = await sql<StoredProject>`
    select project_id as id, project as name, bool_or(retired_at is null) as "isActive"
    from usage_export.series where superseded_at is null group by project_id, project order by project, project_id
  `.execute(tx);
  return rows;
}
