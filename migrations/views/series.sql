create or replace view bi.series as
select project_id, project, "grouping", filter, filter_key = '{}' as unfiltered, filter_key as conditions,
  retired_at is null as active, source, due_from
from usage_export.series where superseded_at is null;

comment on view bi.series is 'The series that are or were exported, one row each.';
