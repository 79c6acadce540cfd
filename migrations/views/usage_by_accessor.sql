create or replace view bi.usage_by_accessor as
select project_id, project, usage_date, group_value as accessor,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'accessor' and filter_key = '{}';

comment on view bi.usage_by_accessor is 'All usage by accessor, one row a project, day and value.';
\ir ../columns/usage.sql
comment on column bi.usage_by_accessor.accessor is 'The public identifier of the API key that was used; NULL for no value';
