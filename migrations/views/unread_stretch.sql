-- The stretches of due days of which there is no slice, one row a stretch.
create or replace view usage_export.unread_stretch as
select s.series_id, s.project_id, s.project, s."grouping", s.filter, s.filter_key, s.window_days, s.source,
  gap.day_before + 1 as from_date, gap.day_after - 1 as to_date
from usage_export.due_series s
left join usage_export.stored_days stored using (series_id)
cross join lateral (
  select lag(day, 1, s.due_from - 1) over (order by day) as day_before, day as day_after
  from (
    select sl.usage_date as day from usage_export.slice sl
    where sl.series_id = s.series_id and sl.usage_date between s.due_from and s.due_until
    union all
    select s.due_until + 1
  ) known
  -- Most series have a slice of each due day; their days are not looked at one by one.
  where stored.are_due is not true
) gap
where gap.day_after - gap.day_before > 1;
