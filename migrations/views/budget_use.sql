-- What was used of a budget in one period, and its forecast if the period is the current month. The function has a plan of its own: the planner
-- expects a thousand periods of each budget, and would compile (JIT) two thousand expressions to show one row. It runs with its owner's
-- rights, as the views do; readers can't call it themselves, as they have no rights to its schema.
create or replace function usage_export.budget_use(budget_name text, budget_from date, period_start date, period_end date)
returns table (
  used numeric, has_unpriced boolean, forecast numeric, forecast_low numeric, forecast_high numeric, is_billed boolean, is_estimated boolean,
  days_read integer, days_missing integer, days_not_final integer, is_final boolean, is_settled boolean, last_read_at timestamptz
)
language sql stable strict security definer set search_path = pg_catalog, pg_temp set jit = off cost 5000 rows 1
begin atomic
  with b as materialized (
    -- The forecast needs the 70 days before today and the whole month.
    select *, case when is_current then least(period_start, today - 70) else period_start end as first_day
    from usage_export.budget
    cross join (select (now() at time zone 'UTC')::date as today) clock
    cross join lateral (select period = 'month' and period_end >= today as is_current) month
    where name = budget_name and valid_from = budget_from
  ), reading as materialized (
    select day.usage_date, s.project_id, billed.series_id is not null as is_billed, sl.status, sl.fetched_at,
      s.priced_days @> day.usage_date
        and (
          sl.fetched_at is not null
          or day.usage_date >= coalesce(s.due_from, day.usage_date) and day.usage_date <= coalesce(s.read_through, day.usage_date)
        ) as is_needed,
      usage_export.finality(day.usage_date, its.window_days, sl.closed_at, now()) as finality,
      -- Whether the day will not be read again, even if it never was read. An estimate is settled only if no billing of the day can come any more.
      usage_export.finality(
        day.usage_date, its.window_days, coalesce(sl.closed_at, case when sl.fetched_at is null then '-infinity'::timestamptz end), now()
      ) = 'final' and (
        s.billing_series_id is null or billed.series_id is not null
        or usage_export.finality(day.usage_date, s.billing_window_days, '-infinity', now()) = 'final'
      ) as is_settled
    from b
    cross join lateral (
      -- The limit leaves no day out, but the planner then expects a hundred days in place of a thousand.
      select first_day + n as usage_date from generate_series(0, period_end - first_day) as n limit period_end - first_day + 1
    ) day
    join usage_export.budget_series s on s.name = b.name and s.valid_from = b.valid_from
    -- Each slice is looked up by itself: for joins, the planner would read every stored slice.
    left join lateral (
      select series_id from usage_export.slice
      where series_id = s.billing_series_id and usage_date = day.usage_date and fetched_at is not null offset 0
    ) billed on true
    left join lateral (
      select status, fetched_at, closed_at from usage_export.slice
      where series_id = coalesce(billed.series_id, s.series_id) and usage_date = day.usage_date offset 0
    ) sl on true
    cross join lateral (select case when billed.series_id is null then s.window_days else s.billing_window_days end as window_days) its
  ), model as materialized (
    -- The groups of usage that a budget of a model counts: the model alone, and each set of models that holds it.
    select g.display as model
    from b
    join usage_export.group_value g on g."grouping" = 'model' and b.scope = 'model'
      and exists (select from usage_export.members(g.group_key) where member = b.scope_value)
  ), amount as materialized (
    select v.usage_date, sum(v.amount) as amount, bool_or(v.is_unpriced) as has_unpriced
    from b
    cross join lateral (
      select u.usage_date,
        case b.metric
          {{metric "\n          ": when '$m' then u.$m}}
        end as amount,
        false as is_unpriced
      from (
        select project_id, usage_date, {{metric: $m}}
        from bi.usage_total where b.scope = 'all'
        union all
        select project_id, usage_date, {{metric: $m}}
        from bi.usage_by_key where b.scope = 'key' and b.scope_value in (lineage, accessor)
        union all
        select project_id, usage_date, {{metric: $m}}
        from bi.usage_by_single_tag where b.scope = 'tag' and tag = b.scope_value
        union all
        select project_id, usage_date, {{metric: $m}}
        from bi.usage_by_model m where b.scope = 'model' and m.model in (select model.model from model)
      ) u
      where b.metric <> 'cost' and u.project_id = any(b.project_ids) and u.usage_date between b.first_day and period_end
      union all
      select c.usage_date, case when c.currency = b.currency then c.amount end, c.currency is distinct from b.currency
      from bi.cost_estimated c
      where b.metric = 'cost' and c.status <> 'other_metric' and c.project_id = any(b.project_ids)
        -- One expression, because the planner would take two for independent conditions on the day.
        and case when c.month >= date_trunc('month', (select first_day from b)::timestamp) and c.month <= period_end then true else false end
        -- A day whose billing was read has no estimate.
        and c.usage_date between (select min(usage_date) from reading where not is_billed)
          and (select max(usage_date) from reading where not is_billed)
        and not exists (
          select from reading r where r.project_id = c.project_id and r.usage_date = c.usage_date and r.is_billed
        )
        and (b.scope = 'all' or c.model in (select model.model from model))
      union all
      select c.usage_date, c.dollars, c.dollars is null
      from usage_export.visible_cost c
      where b.metric = 'cost' and c.usage_date between b.first_day and period_end
        and c.series_id in (
          select s.billing_series_id from usage_export.budget_series s where s.name = b.name and s.valid_from = b.valid_from
        )
        and case b.scope
          when 'all' then c."grouping" = 'none'
          when 'key' then c."grouping" = 'accessor' and b.scope_value in (c.lineage, c.accessor)
          when 'tag' then c."grouping" = 'tags' and exists (select from usage_export.members(c.tags) where member = b.scope_value)
        end
    ) v
    group by v.usage_date
  ), day as materialized (
    -- A day counts as read if it was read for every project. Where its billing was read, only the billing decides. Nothing waits for a
    -- series on days before its first due day, nor after its last day if it is not read any more. A day without any series to read it is
    -- not read.
    select usage_date, coalesce(bool_and(r.fetched_at is not null) filter (where r.is_needed), false) as is_read,
      max(r.fetched_at) as fetched_at,
      coalesce(bool_and(r.is_settled and r.status = 'complete') filter (where r.is_needed), false) as is_final,
      bool_and(r.is_settled) as is_settled, bool_or(r.is_billed) as is_billed,
      bool_or(not r.is_billed and r.fetched_at is not null) as is_estimated,
      bool_and(usage_export.is_known(usage_date, r.finality, r.fetched_at)) filter (where r.is_needed) as is_known,
      max(a.amount) as amount, bool_or(a.has_unpriced) as has_unpriced
    from reading r
    left join amount a using (usage_date)
    group by usage_date
  ), sums as materialized (
    select case when max(d.fetched_at) is not null then coalesce(sum(d.amount), 0) end as used,
      coalesce(bool_or(d.has_unpriced), false) as has_unpriced,
      (count(*) filter (where d.is_read))::integer as days_read,
      (count(*) filter (where not d.is_read and d.usage_date < b.today))::integer as days_missing,
      (count(*) filter (where d.is_read and not d.is_final))::integer as days_not_final,
      bool_and(d.is_read and d.is_final) as is_final, bool_and(d.is_settled) as is_settled, max(d.fetched_at) as last_read_at,
      bool_or(d.is_billed) as is_billed, bool_or(d.is_estimated) as is_estimated
    from day d cross join b
    where d.usage_date >= period_start
  ), history as (
    select array_agg(usage_date) as days, array_agg(coalesce(amount, 0)) as amounts, array_agg(is_known) as are_known
    from day where is_read and usage_date >= (select today - 70 from b where is_current)
  )
  select s.used, s.has_unpriced, round(f.forecast, 6), round(f.low, 6), round(f.high, 6), s.is_billed, s.is_estimated,
    s.days_read, s.days_missing, s.days_not_final, s.is_final, s.is_settled, s.last_read_at
  from b
  cross join sums s
  cross join history
  left join lateral usage_export.month_forecast(b.today, history.days, history.amounts, history.are_known) f on true;
end;
