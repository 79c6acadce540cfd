-- Each visible series with its due days and the number of its slices. is_whole: its due days, and no others except perhaps today, have good
-- slices. A slice is good if it is complete, and was read after its day or is of today. Most series are whole, so a query for what is not
-- complete uses this view to skip them.
create or replace view usage_export.series_days as
select s.*, stored.days, stored.fetched_at,
  stored.are_good and (
    s.due_from is null
    or stored.first_day >= s.due_from and stored.last_day <= s.due_until and stored.days_over = s.due_until - s.due_from + 1
  ) as is_whole
from (
  -- The same due days as in due_series. A join with it would be another pass over the series.
  select series_id, source, project_id, project, "grouping", filter, window_days, retired_at is null as is_active,
    case when retired_at is null then due_from end as due_from,
    case when retired_at is null and due_from is not null
      then usage_export.due_until(due_through, next_due_at, undated_since, window_days)
    end as due_until
  from usage_export.series where superseded_at is null
) s
left join (
  select series_id, count(*)::integer as days, count(*) filter (where is_over)::integer as days_over, min(usage_date) as first_day,
    max(usage_date) filter (where is_over) as last_day, max(fetched_at) as fetched_at,
    bool_and(status = 'complete' and fetched_at is not null and (closed_at is not null or not is_over)) as are_good
  from usage_export.slice
  cross join lateral (select usage_date < (select (now() at time zone 'UTC')::date) as is_over) day
  group by series_id
) stored using (series_id);
