-- What was used of a budget in one period, and its forecast if the period is the current month. A function with a plan of its own: the planner
-- expects a thousand periods of each budget, and would compile (JIT) two thousand expressions to show one row. It runs with its owner's
-- rights, as the views do; readers have no rights to its schema, so they can't call it themselves.
create or replace function usage_export.budget_use(budget_name text, budget_from date, period_start date, period_end date)
returns table (
  used numeric, has_unpriced boolean, forecast numeric, forecast_low numeric, forecast_high numeric, is_billed boolean, is_estimated boolean,
  days_read integer, days_missing integer, days_not_final integer, is_final boolean, is_settled boolean, last_read_at timestamptz,
  minimum_amount numeric
)
language sql stable strict security definer set search_path = pg_catalog, pg_temp set jit = off cost 5000 rows 1
begin atomic
  with b as materialized (
    -- The forecast is made of the 70 days before today and of the whole month.
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
      -- Nobody reads the day again: also one that was never read. An estimate also ends when the day's billing is read at last.
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
    -- Each slice is looked up: as joins, the planner would read every stored slice.
    left join lateral (
      select series_id from usage_export.slice
      where series_id = s.billing_series_id and usage_date = day.usage_date and fetched_at is not null offset 0
    ) billed on true
    left join lateral (
      select status, fetched_at, closed_at from usage_export.slice
      where series_id = coalesce(billed.series_id, s.series_id) and usage_date = day.usage_date offset 0
    ) sl on true
    cross join lateral (select case when billed.series_id is null then s.window_days else s.billing_window_days end as window_days) its
  ), late as materialized (
    select t.project_id, k.days_after, k.known_share
    from usage_export.total_series t
    join usage_export.known_share k using (series_id)
    where t.project_id = any((select project_ids from b where is_current)::text[]) and k.project_id = any((select project_ids from b where is_current)::text[]) and t.filter_key = '{}'
      and k.metric = (select case metric when 'cost' then 'requests' else metric end from b)
  ), model as materialized (
    -- The groups of usage that a budget of a model counts: the model alone, and each set of models that holds it.
    select g.display as model
    from b
    join usage_export.group_value g on g."grouping" = 'model' and b.scope = 'model' and case
      when g.display is null then false
      -- The text of this character can't be read from JSON.
      when position('\u0000' in g.group_key) > 0 then false
      else exists (select from json_array_elements_text(g.group_key::json) as member where member = b.scope_value)
    end
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
        -- In one expression: the planner would take it for another condition on the day.
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
          when 'tag' then c."grouping" = 'tags' and exists (
            select from json_array_elements_text(
              -- Postgres refuses NUL in a text, so it is shown as JSON writes it. A backslash before the escape would be one of the tag's own.
              case when strpos(c.tags, '\u0000') = 0 then c.tags else regexp_replace(c.tags, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\\\u0000', 'g') end::json
            ) as tag where tag = b.scope_value
          )
        end
    ) v
    group by v.usage_date
  ), day as materialized (
    -- A day counts as read when it was for every project. Where its billing was read, that decides, and not the usage. Nothing waits
    -- for a series on days before the first one that it was to read, nor after the last one that was read if it is not read any more; a
    -- day that no series was to read is not read. What is known of a day that is read again is that of its projects' totals. What was
    -- charged is taken as it is: how late usage becomes known says nothing about it.
    select usage_date, coalesce(bool_and(r.fetched_at is not null) filter (where r.is_needed), false) as is_read,
      max(r.fetched_at) as fetched_at,
      coalesce(bool_and(r.is_settled and r.status = 'complete') filter (where r.is_needed), false) as is_final,
      bool_and(r.is_settled) as is_settled, bool_or(r.is_billed) as is_billed,
      bool_or(not r.is_billed and r.fetched_at is not null) as is_estimated,
      avg(case r.finality when 'open' then 0 when 'settling' then coalesce(late.known_share, 1) else 1 end)
        filter (where r.is_needed) as known_share,
      max(a.amount) as amount, bool_or(a.has_unpriced) as has_unpriced
    from reading r
    left join late on late.project_id = r.project_id and r.finality = 'settling' and not r.is_billed
      and late.days_after = (r.fetched_at at time zone 'UTC')::date - r.usage_date
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
    select array_agg(usage_date) as days, array_agg(coalesce(amount, 0)) as amounts, array_agg(known_share) as known_shares
    from day where is_read and usage_date >= (select today - 70 from b where is_current)
  )
  select s.used + lacking.now, s.has_unpriced,
    round(f.forecast + lacking.forecast, 6), round(f.low + lacking.low, 6), round(f.high + lacking.high, 6), s.is_billed, s.is_estimated,
    s.days_read, s.days_missing, s.days_not_final, s.is_final, s.is_settled, s.last_read_at, lacking.now
  from b
  cross join sums s
  cross join history
  left join lateral usage_export.month_forecast(b.today, history.days, history.amounts, history.known_shares) f on true
  cross join lateral (
    -- What is lacking to the minimum of prices, as in bi.cost_estimated_monthly: now, and if each price keeps its part of what is used. It
    -- belongs to a month and all usage, and a bill has it already.
    select coalesce(sum(greatest(minimum - amount, 0)), 0) as now,
      coalesce(sum(greatest(minimum - coalesce(amount * f.forecast / nullif(s.used, 0), 0), 0)), 0) as forecast,
      coalesce(sum(greatest(minimum - coalesce(amount * f.low / nullif(s.used, 0), 0), 0)), 0) as low,
      coalesce(sum(greatest(minimum - coalesce(amount * f.high / nullif(s.used, 0), 0), 0)), 0) as high
    from (
      select sum(e.amount) as amount, max(e.minimum) as minimum
      from (
        select c.project_id, c.currency, c.amount, price.metric, price.model, price.filter_key,
          first_value(price.minimum) over last_price as minimum, first_value(price.currency) over last_price as minimum_currency,
          first_value(price.volume) over last_price as volume
        from bi.cost_estimated c
        join usage_export.price using (price_id)
        where c.price_id is not null and c.usage_date between period_start and period_end
          and case when c.month >= date_trunc('month', period_start::timestamp) and c.month <= period_end then true else false end
        window last_price as (partition by price.metric, price.model, price.filter_key order by price.valid_from desc)
      ) e
      where b.metric = 'cost' and b.scope = 'all' and b.period = 'month' and not coalesce(s.is_billed, false)
        and exists (select from usage_export.price where replaced_at is null and minimum > 0)
        and e.currency = b.currency and e.minimum_currency = b.currency
        -- A minimum that all projects share can't be split among them.
        and case e.volume when 'project' then e.project_id = any(b.project_ids) else b.project is null end
      group by case e.volume when 'project' then e.project_id end, e.metric, e.model, e.filter_key
    ) priced
  ) lacking;
end;

comment on function usage_export.budget_use(text, date, date, date) is 'What was used of a budget in one period: with the days that are missing or not final, and the forecast of the current month.';
