-- The stretches of due days of which there is no slice, one row a stretch.
create or replace view usage_export.unread_stretch as
select s.series_id, s.project_id, s.project, s."grouping", s.filter, s.filter_key, s.window_days, s.source,
  gap.day_before + 1 as from_date, gap.day_after - 1 as to_date, s.installations
from usage_export.due_series s
left join (
  select sl.series_id, array_agg(sl.usage_date) as days
  from usage_export.slice sl
  join usage_export.due_series d on d.series_id = sl.series_id and sl.usage_date between d.due_from and d.due_until
  group by sl.series_id
) stored using (series_id)
cross join lateral (
  select lag(day, 1, s.due_from - 1) over (order by day) as day_before, day as day_after
  from unnest(stored.days || (s.due_until + 1)) as day
) gap
-- Most series have a slice of each day; their days are not looked at one by one.
where coalesce(cardinality(stored.days), 0) < s.due_until - s.due_from + 1 and gap.day_after - gap.day_before > 1;
