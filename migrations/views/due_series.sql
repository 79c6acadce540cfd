-- A day is due once its job's next alarm is past; until then yesterday is not missing, it is early. A series whose answers
-- carry no date has no days, and what was due before stays as it is.
create or replace view usage_export.due_series as
select series_id, project_id, project, "grouping", filter_key, filter, window_days, due_from, due_through, next_due_at,
  retired_at, superseded_at, created_at, source, due.until as due_until,
  -- The newest day whose reading after it was over is due. Without a window the last day of the newest answer has its
  -- reading with the next alarm.
  least(
    due.until - case when window_days is null and now() < next_due_at then 1 else 0 end,
    (now() at time zone 'UTC')::date - 1
  ) as closing_until
from usage_export.series
cross join lateral (
  select case when now() >= next_due_at and (undated_since is null or window_days is not null)
    then greatest(due_through, (now() at time zone 'UTC')::date - 1)
    else due_through end as until
) due
where superseded_at is null and retired_at is null and due_from is not null;
