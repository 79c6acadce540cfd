create or replace view bi.usage_by_endpoint as
select project_id, project, usage_date, group_value as endpoint,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'endpoint' and filter_key = '{}';

comment on view bi.usage_by_endpoint is 'All usage by endpoint, one row a project, day and value.';
\ir ../columns/usage.sql
comment on column bi.usage_by_endpoint.endpoint is 'The endpoint used: listen, speak, agent, read; NULL for no value';
