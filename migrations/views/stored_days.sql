-- For each series with slices, how many it has, their first and last day, and whether all are good: a slice is good if it is complete and its day was
-- over when it was read, or is not over yet. Most series have good slices for just their due days: a query for what is not complete skips them by
-- this view, and looks only at the slices of the others.
create or replace view usage_export.stored_days as
select sl.series_id, count(*)::integer as days, min(sl.usage_date) as first_day, max(sl.usage_date) as last_day,
  bool_and(
    sl.status = 'complete' and sl.fetched_at is not null
      and (sl.closed_at is not null or sl.usage_date >= (now() at time zone 'UTC')::date)
  ) as are_good
from usage_export.slice sl
group by sl.series_id;
