create or replace view bi.usage_by_method as
select project_id, project, usage_date, group_value as method,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'method' and filter_key = '{}';

comment on view bi.usage_by_method is 'All usage by method, one row a project, day and value.';
\ir ../columns/usage.sql
comment on column bi.usage_by_method.method is 'The processing method: sync, async, streaming; NULL for no value';
