create or replace view bi.series as
select project_id, project, "grouping", filter, filter_key = '{}' as unfiltered, filter_key as conditions,
  retired_at is null as active, source, due_from
from usage_export.series where superseded_at is null;

comment on view bi.series is 'The series that are exported, or were: one row a source, project, grouping and filter.';
\ir ../columns/project.sql
comment on column bi.series."grouping" is 'What the numbers are grouped by: a dimension, several in alphabetical order with commas between them, or none';
comment on column bi.series.filter is 'The filter''s name in the configuration';
comment on column bi.series.unfiltered is 'Whether the filter has no conditions: all usage, or all cost';
comment on column bi.series.conditions is 'The conditions of the filter, a JSON object; {} for none';
comment on column bi.series.active is 'Whether it is still configured; if not, its numbers stay and no new ones come';
comment on column bi.series.source is 'usage or billing';
comment on column bi.series.due_from is 'The first day that is due; NULL until it is known';
