-- Compares the amount of a day with the 56 days before it. The expected amount is the weekday's share times the median of the last 14 days,
-- each divided by its weekday's share, so that a new level is usual after a week. The spread is 1.4826 times the median absolute deviation of
-- the days from the median of their week: the standard deviation of normal deviations, which a few days that are far off do not raise. It is
-- at least 5 %. A day is high if it exceeds the expected amount by more than `tolerance` times the spread. A fall is measured by its
-- logarithm, as nothing can fall by more than 100 %. No table is read. docs/forecast.md says how often the verdict is wrong.
create or replace function usage_export.judge_day(
  judged date, judged_amount numeric, days date[], amounts numeric[], tolerance numeric, minimum numeric
)
returns table (verdict text, expected numeric, low numeric, high numeric, score numeric)
language sql immutable parallel safe
begin atomic
  with weekday as materialized (
    select weekday, share from usage_export.weekday_share(days, amounts, judged - 1)
  ), history as materialized (
    select h.day, (judged - 1 - h.day) / 7 as week, h.amount / nullif(w.share, 0) as amount
    from unnest(days, amounts) as h (day, amount)
    join weekday w on w.weekday = extract(isodow from h.day)
    where h.day < judged and h.day >= judged - 56
  ), week as (
    select week, usage_export.median(array_agg(amount)) as amount from history group by week
  ), spread as (
    select greatest(1.4826 * usage_export.median(array_agg(abs(h.amount / w.amount - 1))), 0.05) as share
    from history h join week w using (week)
    where w.amount > 0
  ), usual as (
    select w.share * usage_export.median(array_agg(h.amount) filter (where h.day >= judged - 14)) as expected,
      count(*) >= 28 and count(*) filter (where h.day >= judged - 14) >= 7
        and usage_export.median(array_agg(h.amount) filter (where h.day >= judged - 14)) > 0 as is_known
    from history h
    cross join (select share from weekday where weekday = extract(isodow from judged)) w
    group by w.share
  ), bounds as (
    select u.expected, case when u.expected >= minimum then u.expected * exp(-tolerance * s.share) else 0 end as low,
      greatest(u.expected * (1 + tolerance * s.share), minimum) as high
    from usual u cross join spread s
    where u.is_known and greatest(u.expected, judged_amount) >= minimum
  )
  select
    case when b.expected is null then 'not judged' when judged_amount > b.high then 'high' when judged_amount < b.low then 'low' else 'normal' end,
    round(b.expected, 6), round(b.low, 6), round(b.high, 6),
    -- How far the amount is beyond the bound, to find the metric that is furthest off.
    case
      when judged_amount > b.high then judged_amount / b.high
      when judged_amount < b.low then coalesce(b.low / nullif(judged_amount, 0), 1e9)
      else 0
    end
  from (values (true)) as always
  left join bounds b on true;
end;
