-- The stretches of due days without a slice, one row per stretch.
create or replace view usage_export.unread_stretch as
select s.series_id, s.project_id, s.project, s."grouping", s.filter, s.filter_key, s.window_days, s.source,
  gap.day_before + 1 as from_date, gap.day_after - 1 as to_date
from usage_export.due_series s
cross join lateral (
  select coalesce(array_agg(sl.usage_date), '{}') as days from usage_export.slice sl
  where sl.series_id = s.series_id and sl.usage_date between s.due_from and s.due_until
) stored
cross join lateral (
  select lag(day, 1, s.due_from - 1) over (order by day) as day_before, day as day_after
  from (select unnest(stored.days || (s.due_until + 1)) as day) known
  -- Most series have a slice for each due day. Their days are not examined one by one.
  where cardinality(stored.days) <= s.due_until - s.due_from
) gap
where gap.day_after - gap.day_before > 1;
