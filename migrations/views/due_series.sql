-- A day is due once a run of it began, or once the scheduled time after that run is past: also if no worker is there to notice it. A
-- series whose answers carry no date has no days, and what was due before stays as it is. Today is never due.
create or replace view usage_export.due_series as
select series_id, project_id, project, "grouping", filter_key, filter, window_days, due_from, due_through, next_due_at,
  retired_at, superseded_at, created_at, source, due.until as due_until
from usage_export.series
cross join lateral (
  select case when now() >= next_due_at and (undated_since is null or window_days is not null)
    then (now() at time zone 'UTC')::date - 1
    else least(due_through, (now() at time zone 'UTC')::date - 1) end as until
) due
where superseded_at is null and retired_at is null and due_from is not null;
