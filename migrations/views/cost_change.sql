-- Like bi.usage_change, the function runs with the rights of its caller, and the planner inlines its query.
create or replace function bi.cost_change(
  from_date date, to_date date, before_from date default null, before_to date default null, projects text[] default null
)
returns table (
  project_id text, project text, currency text, metric text, part text,
  model text, endpoint text, method text, deployment text,
  quantity_before numeric, quantity_after numeric, amount_before numeric, amount_after numeric,
  change numeric, volume_effect numeric, price_effect numeric, status text,
  days_compared integer, days_lacking_before integer, days_lacking_after integer, is_final boolean
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
    ), price as materialized (
      select distinct conditions, valid_from, valid_until from bi.price_book
    ), covered as materialized (
      -- A day counts as read under the conditions of bi.usage_change.
      select c.project_id, c.project, c.conditions, c.unfiltered, d.is_after, d.n,
        c.fetched_at is not null and c.status <> 'missing' as is_read, c.status = 'complete' and c.finality = 'final' as is_final
      from bi.coverage c
      join day d using (usage_date)
      where c."grouping" = 'model' and (c.unfiltered or c.conditions in (select conditions from price))
        and (projects is null or c.project = any(projects) or c.project_id = any(projects))
        and c.usage_date between least(from_date, before_start) and greatest(to_date, before_end)
    ), series_day as materialized (
      -- The estimate of a day needs all usage by model, and each series with conditions that a price of the day is for.
      select s.project_id, s.project, s.unfiltered, d.is_after, d.n, d.usage_date, coalesce(c.is_read, false) as is_read,
        coalesce(c.is_final, false) as is_final
      from (select project_id, conditions, unfiltered, max(project) as project from covered group by 1, 2, 3) s
      cross join day d
      left join covered c
        on c.project_id = s.project_id and c.conditions = s.conditions and c.is_after = d.is_after and c.n = d.n
      where s.unfiltered or exists (
        select from price p
        where p.conditions = s.conditions and d.usage_date >= p.valid_from and coalesce(d.usage_date <= p.valid_until, true)
      )
    ), project_day as materialized (
      select *, count(*) filter (where is_read) over (partition by project_id, n) = 2 as is_compared
      from (
        select project_id, max(project) as project, is_after, n, usage_date,
          bool_or(unfiltered and is_read) as is_read_by_model, bool_and(is_read) as is_read, bool_and(is_final) as is_final
        from series_day group by project_id, is_after, n, usage_date
      ) day_of_project
    ), project as materialized (
      select project_id, max(project) as project, (count(*) filter (where is_compared) / 2)::integer as days_compared,
        (count(*) filter (where not is_read and not is_after))::integer as days_lacking_before,
        (count(*) filter (where not is_read and is_after))::integer as days_lacking_after, bool_and(is_final) as is_final
      from project_day group by project_id
    ), cost as materialized (
      select c.project_id, c.currency, c.metric, case when d.is_compared then 'group' else 'days not compared' end as part,
        case when d.is_compared then c.model end as model, case when d.is_compared then c.endpoint end as endpoint,
        case when d.is_compared then c.method end as method, case when d.is_compared then c.deployment end as deployment,
        coalesce(sum(c.quantity) filter (where not d.is_after), 0) as quantity_before,
        coalesce(sum(c.quantity) filter (where d.is_after), 0) as quantity_after,
        case when c.currency is not null then coalesce(sum(c.amount) filter (where not d.is_after), 0) end as amount_before,
        case when c.currency is not null then coalesce(sum(c.amount) filter (where d.is_after), 0) end as amount_after,
        min(c.price) = max(c.price) as has_one_price
      from bi.cost_estimated c
      join project_day d on d.project_id = c.project_id and d.usage_date = c.usage_date and d.is_read_by_model
      -- An array of projects limits the rows before they are added up and sorted.
      where c.status <> 'other_metric' and c.project_id = any(array(select project_id from project))
        and c.usage_date between least(from_date, before_start) and greatest(to_date, before_end)
      group by 1, 2, 3, 4, 5, 6, 7, 8
    ), effect as (
      select *, amount_after - amount_before as change,
        case
          when part <> 'group' then null
          when has_one_price or quantity_before = 0 or quantity_after = 0 then amount_after - amount_before
          -- An average price may have endless digits. The price effect is the rest, so that both effects add up exactly.
          else round((quantity_after - quantity_before) * amount_before / quantity_before, 12)
        end as volume_effect
      from cost
    )
    select p.project_id, p.project, e.currency, e.metric, e.part, e.model, e.endpoint, e.method, e.deployment,
      e.quantity_before, e.quantity_after, e.amount_before, e.amount_after, e.change, e.volume_effect,
      e.change - e.volume_effect as price_effect,
      case
        when e.part <> 'group' then null
        when e.currency is null then 'unpriced'
        when e.quantity_before = 0 then 'new'
        when e.quantity_after = 0 then 'vanished'
        when e.change = 0 then 'same'
        else 'changed'
      end as status,
      p.days_compared, p.days_lacking_before, p.days_lacking_after, p.is_final
    from effect e
    join project p on p.project_id = e.project_id
  ) as answer;
end;

comment on function bi.cost_change(date, date, date, date, text[]) is 'How the estimated cost changed from one period to another, and why: one row per project, currency, metric, model and conditions of the price, with its change split in a volume effect (change in quantity at the average price of before) and a price effect (the rest). For each project and currency the rows add up to the change of bi.cost_estimated exactly, on days that were read by model; usage without a price has a row without amounts. Without before_from and before_to it compares with the same number of days before from_date.';
