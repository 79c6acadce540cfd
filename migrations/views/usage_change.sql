-- The function runs with the rights of its caller. The planner inlines its single query, so that it can search the indexes by the days and names
-- that the caller asks for.
create or replace function bi.usage_change(
  from_date date, to_date date, before_from date default null, before_to date default null,
  projects text[] default null, metrics text[] default null, groupings text[] default null
)
returns table (
  project_id text, project text, metric text, "grouping" text, part text, group_value text,
  amount_before numeric, amount_after numeric, change numeric, status text,
  days_compared integer, days_lacking_before integer, days_lacking_after integer, is_final boolean, total_from text
)
language sql stable
begin atomic
  select answer.*
  from (
    select coalesce(before_from, coalesce(before_to, from_date - 1) - (to_date - from_date)) as before_start,
      coalesce(before_to, from_date - 1) as before_end
  ) as period
  cross join lateral (
    with day as materialized (
      -- A day is compared with the day of the other period that has the same n.
      select true as is_after, n, from_date + n as usage_date from generate_series(0, to_date - from_date) as n
      union all
      select false, n, before_start + n from generate_series(0, before_end - before_start) as n
    ), covered as materialized (
      -- The days that were read after they were over: earlier readings do not have all usage of the day.
      select c.project_id, c.project, c."grouping", c.active, d.is_after, d.n,
        c.status = 'complete' and c.finality = 'final' as is_final
      from bi.coverage c
      join day d using (usage_date)
      where c.source = 'usage' and c.fetched_at is not null and c.status <> 'missing' and c.unfiltered and (projects is null or c.project = any(projects) or c.project_id = any(projects))
        and c.usage_date between least(from_date, before_start) and greatest(to_date, before_end)
    ), total_series as materialized (
      -- Configured series come first, as a retired one lacks all usage since then. Groups that overlap make no total.
      select distinct on (project_id) project_id, project, "grouping"
      from (
        select project_id, project, "grouping", bool_or(active) as is_active, count(*) as days
        from covered where "grouping" not in ({{overlapping}}) group by project_id, project, "grouping"
      ) known
      order by project_id, is_active desc, days desc,
        array_position(array[{{totals}}], "grouping")
    ), part_series as materialized (
      select t.project_id, t."grouping" as total_from, 'none' as "grouping", t."grouping" as read_from from total_series t
      union all
      select distinct t.project_id, t."grouping", c."grouping", c."grouping"
      from total_series t join covered c using (project_id) where c."grouping" <> 'none'
    ), series_day as materialized (
      select s.project_id, s."grouping", d.is_after, d.n, d.usage_date, t.project_id is not null as total_is_read,
        t.project_id is not null and g.project_id is not null as is_read, coalesce(t.is_final and g.is_final, false) as is_final,
        count(*) filter (where t.project_id is not null and g.project_id is not null) over (partition by s.project_id, s."grouping", d.n) = 2 as is_compared
      from part_series s
      cross join day d
      left join covered t
        on t.project_id = s.project_id and t."grouping" = s.total_from and t.is_after = d.is_after and t.n = d.n
      left join covered g
        on g.project_id = s.project_id and g."grouping" = s.read_from and g.is_after = d.is_after and g.n = d.n
      where groupings is null or s."grouping" = any(groupings)
    ), series as materialized (
      select project_id, "grouping",
        (count(*) filter (where is_compared) / 2)::integer as days_compared,
        (count(*) filter (where not is_read and not is_after))::integer as days_lacking_before,
        (count(*) filter (where not is_read and is_after))::integer as days_lacking_after, bool_and(is_final) as is_final
      from series_day group by project_id, "grouping"
    ), total_day as materialized (
      select t.project_id, u.usage_date, {{metric: $m}}
      from bi.usage_total u
      join total_series t using (project_id)
      where t."grouping" = 'none' and (projects is null or u.project = any(projects) or u.project_id = any(projects))
        and u.usage_date between least(from_date, before_start) and greatest(to_date, before_end)
      union all
      select t.project_id, u.usage_date,
        {{metric: sum(u.$m)}}
      from bi.usage_by_group u
      join total_series t using (project_id, "grouping")
      where t."grouping" <> 'none' and (projects is null or u.project = any(projects) or u.project_id = any(projects))
        and u.usage_date between least(from_date, before_start) and greatest(to_date, before_end)
      group by t.project_id, u.usage_date
    ), total as materialized (
      -- The sums of all days, and of those that are compared.
      select d.project_id, d."grouping", m.metric,
        coalesce(sum(m.amount) filter (where not d.is_after), 0) as amount_before,
        coalesce(sum(m.amount) filter (where d.is_after), 0) as amount_after,
        coalesce(sum(m.amount) filter (where not d.is_after and d.is_compared), 0) as compared_before,
        coalesce(sum(m.amount) filter (where d.is_after and d.is_compared), 0) as compared_after
      from series_day d
      join total_day u using (project_id, usage_date)
      cross join lateral (values
        {{metric: ('$m', u.$m)}}
      ) as m (metric, amount)
      where d.total_is_read and m.amount is not null and (metrics is null or m.metric = any(metrics))
      group by d.project_id, d."grouping", m.metric
    ), group_change as materialized (
      select s.project_id, s."grouping", m.metric, s.group_value, m.amount_before, m.amount_after
      from (
        select project_id, "grouping", group_value,
          {{metric: sum($m) filter (where not is_after) as $m_before, sum($m) filter (where is_after) as $m_after}}
        from (
          select u.project_id, u."grouping", u.lineage as group_value, d.is_after,
            -- Metrics that nobody asks for are not sorted and added up.
            {{metric: case when metrics is null or '$m' = any(metrics) then u.$m end as $m}}
          from series_day d
          join bi.usage_by_group u using (project_id, "grouping", usage_date)
          where d.is_compared
        ) compared
        group by project_id, "grouping", group_value
      ) s
      cross join lateral (values
        {{metric: ('$m', s.$m_before, s.$m_after)}}
      ) as m (metric, amount_before, amount_after)
      where (m.amount_before > 0 or m.amount_after > 0) and (metrics is null or m.metric = any(metrics))
    )
    select t.project_id, t.project, c.metric, c."grouping", c.part, c.group_value, c.amount_before, c.amount_after,
      coalesce(c.amount_after, 0) - coalesce(c.amount_before, 0) as change,
      case
        when c.part <> 'group' then null
        when coalesce(c.amount_before, 0) = coalesce(c.amount_after, 0) then 'same'
        when coalesce(c.amount_before, 0) = 0 then 'new'
        when coalesce(c.amount_after, 0) = 0 then 'vanished'
        else 'changed'
      end as status,
      s.days_compared, s.days_lacking_before, s.days_lacking_after, s.is_final,
      t."grouping" as total_from
    from (
      -- A metric that the total lacks has no change to explain.
      select g.project_id, g."grouping", g.metric, 'group' as part, g.group_value, g.amount_before, g.amount_after
      from group_change g
      join total using (project_id, "grouping", metric)
      union all
      select project_id, "grouping", metric, 'group', null, compared_before, compared_after
      from total where "grouping" = 'none'
      union all
      select t.project_id, t."grouping", t.metric, 'not attributed', null,
        t.compared_before - coalesce(g.amount_before, 0), t.compared_after - coalesce(g.amount_after, 0)
      from total t
      left join (
        select project_id, "grouping", metric, sum(amount_before) as amount_before, sum(amount_after) as amount_after
        from group_change group by project_id, "grouping", metric
      ) g using (project_id, "grouping", metric)
      where t."grouping" <> 'none'
        and (t.compared_before <> coalesce(g.amount_before, 0) or t.compared_after <> coalesce(g.amount_after, 0))
      union all
      select project_id, "grouping", metric, 'days not compared', null,
        amount_before - compared_before, amount_after - compared_after
      from total where amount_before <> compared_before or amount_after <> compared_after
    ) c
    join total_series t on t.project_id = c.project_id
    join series s on s.project_id = c.project_id and s."grouping" = c."grouping"
  ) as answer;
end;

comment on function bi.usage_change(date, date, date, date, text[], text[], text[]) is 'How usage changed from one period to another, and why: one row per project, metric, grouping and group, with its amounts in both periods. The rows of a project, metric and grouping add up to the change of the total exactly: part says which row is a group, what no group accounts for (not attributed), and the usage of days that only one period has (days not compared). Without before_from and before_to it compares with the same number of days before from_date. Only usage without filter; keys by lineage. Never add up over groupings.';
