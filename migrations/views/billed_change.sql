-- Like bi.usage_change, the function runs with the rights of its caller, and the planner inlines its query. A grouping by several dimensions also
-- tells what each value of one of them costs.
create or replace function bi.billed_change(
  from_date date, to_date date, before_from date default null, before_to date default null, projects text[] default null,
  groupings text[] default null
)
returns table (
  project_id text, project text, currency text, "grouping" text, part text, group_value text,
  amount_before numeric, amount_after numeric, change numeric, status text,
  days_compared integer, days_lacking_before integer, days_lacking_after integer, is_final boolean, total_from text, read_from text
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
    ), cost as materialized (
      select c.project_id, c."grouping", c.usage_date, c.lineage, c.deployment, c.line_item, c.tags, c.amount
      from bi.cost_by_group c
      where c.usage_date between least(from_date, before_start) and greatest(to_date, before_end)
        and (projects is null or c.project = any(projects) or c.project_id = any(projects))
    ), cost_day as materialized (
      select project_id, "grouping", usage_date, sum(amount) as amount, bool_or(amount is null) as is_unknown
      from cost group by project_id, "grouping", usage_date
    ), covered as materialized (
      -- The days that were read. The cost of a day is not known if one of its groups has no amount.
      select project_id, c.project, "grouping", c.active, d.is_after, d.n, usage_date,
        c.status = 'complete' and c.finality = 'final' as is_final
      from bi.coverage c
      join day d using (usage_date)
      left join cost_day using (project_id, "grouping", usage_date)
      where c.source = 'billing' and c.fetched_at is not null and c.status <> 'missing' and c.unfiltered
        and (projects is null or c.project = any(projects) or c.project_id = any(projects))
        and c.usage_date between least(from_date, before_start) and greatest(to_date, before_end)
        and cost_day.is_unknown is not true
    ), stored as materialized (
      select project_id, max(project) as project, "grouping", bool_or(active) as is_active, count(*) as days,
        case when "grouping" <> 'none' then string_to_array("grouping", ',') end as dimensions
      from covered group by project_id, "grouping"
    ), total_series as materialized (
      -- Configured series come first, as a retired one lacks all cost since then.
      select distinct on (project_id) project_id, project, "grouping"
      from stored
      order by project_id, is_active desc, days desc, coalesce(cardinality(dimensions), 0), "grouping"
    ), part_series as materialized (
      select t.project_id, t."grouping" as total_from, 'none' as "grouping", t."grouping" as read_from from total_series t
      union all
      (
        select distinct on (t.project_id, dimension) t.project_id, t."grouping", dimension, s."grouping"
        from total_series t
        join stored s using (project_id)
        cross join lateral unnest(s.dimensions) as dimension
        where groupings is null or dimension = any(groupings)
        order by t.project_id, dimension, s.is_active desc, s.days desc, cardinality(s.dimensions), s."grouping"
      )
    ), series_day as materialized (
      select s.project_id, s."grouping", s.total_from, s.read_from, d.is_after, d.n, d.usage_date, t.project_id is not null as total_is_read,
        t.project_id is not null and g.project_id is not null as is_read, coalesce(t.is_final and g.is_final, false) as is_final,
        count(*) filter (where t.project_id is not null and g.project_id is not null)
          over (partition by s.project_id, s."grouping", d.n) = 2 as is_compared
      from part_series s
      cross join day d
      left join covered t on t.project_id = s.project_id and t."grouping" = s.total_from and t.is_after = d.is_after and t.n = d.n
      left join covered g on g.project_id = s.project_id and g."grouping" = s.read_from and g.is_after = d.is_after and g.n = d.n
    ), series as materialized (
      select project_id, "grouping", total_from, read_from, (count(*) filter (where is_compared) / 2)::integer as days_compared,
        (count(*) filter (where not is_read and not is_after))::integer as days_lacking_before,
        (count(*) filter (where not is_read and is_after))::integer as days_lacking_after, bool_and(is_final) as is_final
      from series_day group by project_id, "grouping", total_from, read_from
    ), total as materialized (
      -- The sums of all days, and of those that are compared.
      select d.project_id, d."grouping",
        coalesce(sum(c.amount) filter (where not d.is_after), 0) as amount_before,
        coalesce(sum(c.amount) filter (where d.is_after), 0) as amount_after,
        coalesce(sum(c.amount) filter (where not d.is_after and d.is_compared), 0) as compared_before,
        coalesce(sum(c.amount) filter (where d.is_after and d.is_compared), 0) as compared_after
      from series_day d
      left join cost_day c on c.project_id = d.project_id and c."grouping" = d.total_from and c.usage_date = d.usage_date
      where d.total_is_read
      group by d.project_id, d."grouping"
    ), group_change as materialized (
      select d.project_id, d."grouping", value.group_value,
        coalesce(sum(c.amount) filter (where not d.is_after), 0) as amount_before,
        coalesce(sum(c.amount) filter (where d.is_after), 0) as amount_after
      from series_day d
      join cost c on c.project_id = d.project_id and c."grouping" = d.read_from and c.usage_date = d.usage_date
      cross join lateral (
        select case d."grouping" when 'accessor' then c.lineage when 'deployment' then c.deployment when 'line_item' then c.line_item
          when 'tags' then c.tags end as group_value
      ) value
      where d.is_compared and d."grouping" <> 'none' and c.amount <> 0
      group by d.project_id, d."grouping", value.group_value
    )
    select t.project_id, t.project, 'USD' as currency, c."grouping", c.part, c.group_value, c.amount_before, c.amount_after,
      c.amount_after - c.amount_before as change,
      case
        when c.part <> 'group' then null
        when c.amount_before = c.amount_after then 'same'
        when c.amount_before = 0 then 'new'
        when c.amount_after = 0 then 'vanished'
        else 'changed'
      end as status,
      s.days_compared, s.days_lacking_before, s.days_lacking_after, s.is_final,
      s.total_from, s.read_from
    from (
      select g.project_id, g."grouping", 'group' as part, g.group_value, g.amount_before, g.amount_after
      from group_change g
      union all
      select project_id, "grouping", 'group', null, compared_before, compared_after from total where "grouping" = 'none'
      union all
      select t.project_id, t."grouping", 'not attributed', null,
        t.compared_before - coalesce(g.amount_before, 0), t.compared_after - coalesce(g.amount_after, 0)
      from total t
      left join (
        select project_id, "grouping", sum(amount_before) as amount_before, sum(amount_after) as amount_after
        from group_change group by project_id, "grouping"
      ) g using (project_id, "grouping")
      where t."grouping" <> 'none'
        and (t.compared_before <> coalesce(g.amount_before, 0) or t.compared_after <> coalesce(g.amount_after, 0))
      union all
      select project_id, "grouping", 'days not compared', null, amount_before - compared_before, amount_after - compared_after
      from total where amount_before <> compared_before or amount_after <> compared_after
    ) c
    join total_series t on t.project_id = c.project_id
    join series s on s.project_id = c.project_id and s."grouping" = c."grouping"
  ) as answer;
end;

comment on function bi.billed_change(date, date, date, date, text[], text[]) is 'How charges changed from one period to another, and why: one row per project, dimension and group, with its amounts in both periods. The rows of a project and dimension add up to the change of the total exactly: part says which row is a group, what no group accounts for (not attributed), and the cost of days that only one period has (days not compared). The dimension none is the total. Without before_from and before_to it compares with the same number of days before from_date. Only billing without filter; keys by lineage. Never add up over dimensions.';
