-- The daily totals of the last 80 days, and of as many earlier ones as the window has, one row per day and metric with any usage. A day that was
-- read without rows has 0.
create or replace view usage_export.total_day as
select s.series_id, s.project_id, s.project, s.filter_key, s.filter, s."grouping", d.usage_date, d.status,
  usage_export.finality(d.usage_date, s.window_days, d.closed_at, now()) as finality, d.closed_at, d.fetched_at, d.metric, d.amount
from usage_export.total_series s
cross join lateral (
  select sums.*, m.metric, coalesce(m.amount, 0) as amount, max(m.amount) over (partition by m.metric) > 0 as has_usage
  from (
    select sl.usage_date, sl.status, sl.closed_at, sl.fetched_at,
      {{metric: sum(r.$m) as $m}}
    from usage_export.slice sl
    left join usage_export.slice_row r on r.series_id = sl.series_id and r.usage_date = sl.usage_date and not r.gone
    where sl.series_id = s.series_id and sl.fetched_at is not null and sl.usage_date >= (now() at time zone 'UTC')::date - 80 - coalesce(s.window_days, 0)
    group by sl.series_id, sl.usage_date
  ) sums
  cross join lateral (values
    {{metric: ('$m', $m)}}
  ) as m (metric, amount)
) d
where d.has_usage;
