-- Estimates the amount of the whole month of `today` from days that were read, in any order: the days of the month, and the 56 days that end
-- with the newest known day of the last 70. A day that is not known, because it may still lack usage, has at least what is stored. A day that
-- was not read is estimated from its weekday.
--
-- The estimate of a day ahead is its weekday's share of a week, times the level of the last 14 days, times the trend if there is a clear one. A
-- day of more than 3 times its usual amount counts as 3 times, so that one spike does not raise the rest of the month. No table is read.
-- docs/forecast.md has the measured error.
create or replace function usage_export.month_forecast(today date, days date[], amounts numeric[], are_known boolean[])
returns table (amount numeric, forecast numeric, low numeric, high numeric, days_known integer, days_ahead integer)
-- It is strict and names its number of rows, because its plan within a reader's plan would be compiled (JIT) again and again.
language sql immutable strict parallel safe rows 1 cost 1000
begin atomic
  with month as (
    select date_trunc('month', today::timestamp)::date as first_day,
      (date_trunc('month', today::timestamp) + interval '1 month')::date - 1 as last_day
  ), stored as (
    select day, coalesce(amount, 0) as amount, is_known from unnest(days, amounts, are_known) as stored (day, amount, is_known)
  ), known as materialized (
    select day, amount, extract(isodow from day)::integer as weekday,
      (max(day) over () - day) / 7 as week, row_number() over (order by day desc) as age
    from stored where day < today and day >= today - 70 and is_known
  ), history as materialized (
    select * from known where week < 8
  ), profile as materialized (
    select weekday, share
    from usage_export.weekday_share((select array_agg(day) from known), (select array_agg(amount) from known), (select max(day) from known))
  ), cut as materialized (
    -- NULL if half of the days have no usage: then nothing is cut.
    select nullif(3 * usage_export.median(array_agg(amount / nullif(share, 0))), 0) as a_day
    from history join profile using (weekday) where age <= 28
  ), usual as materialized (
    select h.week, h.age, h.amount, p.share, least(h.amount, p.share * cut.a_day) as cut_amount
    from history h
    join profile p using (weekday)
    cross join cut
  ), week_level as materialized (
    select week, sum(cut_amount) / nullif(sum(share), 0) as a_day, sum(amount) / nullif(sum(share), 0) as uncut_a_day
    from usual group by week
  ), trend as (
    -- The trend is clear if at least 25 of the 28 pairs of the eight weeks rise, or fall. Then the median change from week to week goes on.
    select case
        when abs(sum(sign(later.a_day - earlier.a_day))) >= 22
        then usage_export.median(array_agg(later.a_day - earlier.a_day) filter (where earlier.week = later.week + 1))
        else 0
      end as a_week
    from week_level later join week_level earlier on earlier.week > later.week
  ), spread as (
    -- The spread of a single day, as a share of its week's level. The level of each week takes one degree of freedom.
    select sqrt(sum((u.amount / u.share / w.uncut_a_day - 1) ^ 2) / nullif(count(*) - count(distinct week), 0)) as a_day
    from usual u join week_level w using (week)
    where u.share > 0 and w.uncut_a_day > 0
  ), level as materialized (
    select sum(cut_amount) filter (where age <= 14) / nullif(sum(share) filter (where age <= 14), 0) as a_day,
      (select max(day) from known) as newest_day, count(*) >= 14 as is_enough
    from usual
  ), month_day as materialized (
    select s.amount as stored, k.amount as known, p.share,
      -- The level of 14 days is that of their middle, 7 days before the newest known day.
      greatest(
        p.share * greatest(l.a_day + t.a_week * (m.day - l.newest_day + 7) / 7, 0),
        coalesce(s.amount, 0)
      ) as estimate
    from (select first_day + n as day from month, generate_series(0, last_day - first_day) as n) m
    cross join level l
    cross join trend t
    join profile p on p.weekday = extract(isodow from m.day)
    left join stored s on s.day = m.day
    left join known k on k.day = m.day
  ), sums as (
    select coalesce(sum(stored), 0) as amount, coalesce(sum(known), 0) as known,
      coalesce(sum(estimate) filter (where known is null), 0) as ahead,
      sum(share) filter (where known is null) as shares, sum(share ^ 2) filter (where known is null) as squares,
      count(known)::integer as days_known, count(*) filter (where known is null)::integer as days_ahead
    from month_day
  ), estimate as (
    select sums.amount, known + ahead as forecast,
      -- Each day ahead is off by the spread of a day. All of them are off together, as 14 days do not tell the level exactly.
      coalesce(1.7 * spread.a_day * ahead * sqrt(squares + shares ^ 2 / 14) / nullif(shares, 0), 0) as margin,
      sums.days_known, sums.days_ahead
    from sums cross join spread cross join level
    where is_enough or sums.days_ahead = 0
  )
  select sums.amount, round(e.forecast, 6),
    -- The month has at least what is stored already.
    round(greatest(e.forecast - e.margin, e.amount), 6), round(e.forecast + e.margin, 6),
    sums.days_known, sums.days_ahead
  from sums left join estimate e on true;
end;
