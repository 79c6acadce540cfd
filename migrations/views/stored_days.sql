-- For each series with slices, how many it has, whether all are good, and whether their days are exactly its due days (NULL without due days).
-- A slice is good if it is complete and its day was over when it was read, or is not over yet. Most series have good slices for all their due
-- days: a query for what is not complete skips them by this view, and looks only at the slices of the others.
create or replace view usage_export.stored_days as
select stored.series_id, stored.days, stored.good = stored.days as are_good,
  stored.first_day >= d.due_from and stored.last_day <= d.due_until and stored.days = d.due_until - d.due_from + 1 as are_due
from (
  select sl.series_id, count(*)::integer as days, min(sl.usage_date) as first_day, max(sl.usage_date) as last_day,
    count(*) filter (
      where sl.status = 'complete' and sl.fetched_at is not null
        and (sl.closed_at is not null or sl.usage_date >= (now() at time zone 'UTC')::date)
    ) as good
  from usage_export.slice sl
  group by sl.series_id
) stored
left join usage_export.due_series d using (series_id);
