-- The series with due days.
create or replace view usage_export.due_series as
select series_id, source, project_id, project, "grouping", filter_key, filter, window_days, due_from,
  usage_export.due_until(due_through, next_due_at, undated_since, window_days) as due_until
from usage_export.series
where superseded_at is null and retired_at is null and due_from is not null;
