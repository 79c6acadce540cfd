-- The periods of each budget up to the current one, with what was used of it. The days of a period are joined in lateral queries, so that
-- a condition on the period decides which days are read at all.
create or replace view usage_export.budget_period as
select b.name, b.project, b.project_ids, b.scope, b.scope_value, b.metric, b.currency, b.period, p.period_start, p.period_end,
  b.amount, b.thresholds, d.used + lacking.now as used, d.has_unpriced,
  array(
    select threshold from unnest(b.thresholds) as threshold where (d.used + lacking.now) * 100 >= threshold * b.amount order by threshold
  ) as reached,
  round(f.forecast + lacking.forecast, 6) as forecast, round(f.low + lacking.low, 6) as forecast_low,
  round(f.high + lacking.high, 6) as forecast_high,
  case when b.metric = 'cost' then
    nullif(concat_ws(' and ', case when d.is_billed then 'billed' end, case when d.is_estimated then 'estimated' end), '')
  end as cost_source,
  d.days_read, d.days_missing, d.days_not_final, d.is_final, d.is_settled, d.last_read_at,
  case when b.metric = 'cost' then lacking.now end as minimum_amount
from usage_export.budget b
cross join (select (now() at time zone 'UTC')::date as today) clock
cross join lateral (
  select first::date as period_start,
    case b.period when 'month' then (first + interval '1 month')::date - 1 else first::date end as period_end
  from generate_series(
    b.valid_from::timestamp, least(b.valid_until, clock.today)::timestamp,
    case b.period when 'month' then interval '1 month' else interval '1 day' end
  ) as first
) p
cross join lateral (
  select case when max(r.fetched_at) is not null then coalesce(sum(u.amount), 0) end as used,
    coalesce(bool_or(u.has_unpriced), false) as has_unpriced,
    (count(*) filter (where r.is_read))::integer as days_read,
    (count(*) filter (where not r.is_read and r.usage_date < clock.today))::integer as days_missing,
    (count(*) filter (where r.is_read and not r.is_final))::integer as days_not_final,
    bool_and(r.is_read and r.is_final) as is_final, bool_and(r.is_settled) as is_settled, max(r.fetched_at) as last_read_at,
    bool_or(r.is_billed) as is_billed, bool_or(r.is_estimated) as is_estimated
  from (
    -- A day counts as read when it was for every project. Where its billing was read, that decides, and not the usage. Nothing waits
    -- for a series on days before the first one that it was to read, nor after the last one that was read if it is not read any more; a day that no series was to read is not read.
    select day.usage_date, coalesce(bool_and(sl.fetched_at is not null) filter (where needed.is_needed), false) as is_read,
      max(sl.fetched_at) as fetched_at,
      coalesce(bool_and(state.is_settled and sl.status = 'complete') filter (where needed.is_needed), false) as is_final,
      bool_and(state.is_settled) as is_settled,
      bool_or(billed.series_id is not null) as is_billed, bool_or(billed.series_id is null and sl.fetched_at is not null) as is_estimated
    from generate_series(0, p.period_end - p.period_start) as n
    cross join lateral (select p.period_start + n as usage_date) day
    join usage_export.budget_series s on s.name = b.name and s.valid_from = b.valid_from
    left join usage_export.slice billed
      on billed.series_id = s.billing_series_id and billed.usage_date = day.usage_date and billed.fetched_at is not null
    left join usage_export.slice sl on sl.series_id = coalesce(billed.series_id, s.series_id) and sl.usage_date = day.usage_date
    cross join lateral (
      select s.priced_days @> day.usage_date
        and (
          sl.fetched_at is not null
          or day.usage_date >= coalesce(s.due_from, day.usage_date) and day.usage_date <= coalesce(s.read_through, day.usage_date)
        ) as is_needed
    ) needed
    cross join lateral (
      -- Nobody reads the day again: also one that was never read. An estimate also ends when the day's billing is read at last.
      select usage_export.finality(
        day.usage_date, case when billed.series_id is null then s.window_days else s.billing_window_days end,
        coalesce(sl.closed_at, case when sl.fetched_at is null then '-infinity'::timestamptz end), now()
      ) = 'final' and (
        s.billing_series_id is null or billed.series_id is not null
        or usage_export.finality(day.usage_date, s.billing_window_days, '-infinity', now()) = 'final'
      ) as is_settled
    ) state
    group by day.usage_date
  ) r
  left join (
    select a.usage_date, sum(a.amount) as amount, bool_or(a.is_unpriced) as has_unpriced
    from usage_export.budget_amount a
    where a.name = b.name and a.valid_from = b.valid_from and a.usage_date between p.period_start and p.period_end
    group by a.usage_date
  ) u using (usage_date)
) d
cross join lateral (
  -- The days up to the current month's end, for its forecast. What is known of a day that is read again is that of its projects'
  -- totals. What was charged is taken as it is: how late usage becomes known says nothing about it.
  select array_agg(r.usage_date) as days, array_agg(coalesce(u.amount, 0)) as amounts, array_agg(r.known_share) as known_shares
  from (
    select day.usage_date,
      avg(case state.finality when 'open' then 0 when 'settling' then coalesce(k.known_share, 1) else 1 end)
        filter (where needed.is_needed) as known_share
    from generate_series(0, p.period_end - (clock.today - 70)) as n
    cross join lateral (select clock.today - 70 + n as usage_date) day
    join usage_export.budget_series s on s.name = b.name and s.valid_from = b.valid_from
    left join usage_export.slice billed
      on billed.series_id = s.billing_series_id and billed.usage_date = day.usage_date and billed.fetched_at is not null
    left join usage_export.slice sl on sl.series_id = coalesce(billed.series_id, s.series_id) and sl.usage_date = day.usage_date
      and sl.fetched_at is not null
    cross join lateral (
      select s.priced_days @> day.usage_date
        and (
          sl.fetched_at is not null
          or day.usage_date >= coalesce(s.due_from, day.usage_date) and day.usage_date <= coalesce(s.read_through, day.usage_date)
        ) as is_needed
    ) needed
    cross join lateral (
      select usage_export.finality(
        day.usage_date, case when billed.series_id is null then s.window_days else s.billing_window_days end, sl.closed_at, now()
      ) as finality
    ) state
    left join usage_export.total_series t on t.project_id = s.project_id and t.filter_key = '{}'
    left join usage_export.known_share k on k.series_id = t.series_id and state.finality = 'settling' and billed.series_id is null
      and k.metric = case b.metric when 'cost' then 'requests' else b.metric end
      and k.days_after = (sl.fetched_at at time zone 'UTC')::date - sl.usage_date
    group by day.usage_date
    -- A day that was not read for every project is unknown.
    having bool_and(sl.fetched_at is not null) filter (where needed.is_needed)
  ) r
  left join (
    select a.usage_date, sum(a.amount) as amount
    from usage_export.budget_amount a
    where a.name = b.name and a.valid_from = b.valid_from and a.usage_date between clock.today - 70 and p.period_end
    group by a.usage_date
  ) u using (usage_date)
  where b.period = 'month' and p.period_end >= clock.today
) history
left join lateral usage_export.month_forecast(clock.today, history.days, history.amounts, history.known_shares) f on history.days is not null
cross join lateral (
  -- What is lacking to the minimum of prices, as in bi.cost_estimated_monthly: now, and if each price keeps its part of what is used. It
  -- belongs to a month and all usage, and a bill has it already.
  select coalesce(sum(greatest(minimum - amount, 0)), 0) as now,
    coalesce(sum(greatest(minimum - coalesce(amount * f.forecast / nullif(d.used, 0), 0), 0)), 0) as forecast,
    coalesce(sum(greatest(minimum - coalesce(amount * f.low / nullif(d.used, 0), 0), 0)), 0) as low,
    coalesce(sum(greatest(minimum - coalesce(amount * f.high / nullif(d.used, 0), 0), 0)), 0) as high
  from (
    -- After a change within the month the last price's minimum counts.
    select sum(e.amount) as amount, (array_agg(price.minimum order by price.valid_from desc))[1] as minimum
    from bi.cost_estimated e
    join usage_export.price using (price_id)
    where b.metric = 'cost' and b.scope = 'all' and b.period = 'month' and not coalesce(d.is_billed, false)
      and exists (select from usage_export.price where replaced_at is null and minimum > 0)
      and e.price_id is not null and e.currency = b.currency and e.usage_date between p.period_start and p.period_end
      -- A minimum that all projects share can't be split among them.
      and case price.volume when 'project' then e.project_id = any(b.project_ids) else b.project is null end
    group by case price.volume when 'project' then e.project_id end, price.metric, price.model, price.filter_key
  ) priced
) lacking;
