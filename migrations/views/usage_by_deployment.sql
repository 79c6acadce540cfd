create or replace view bi.usage_by_deployment as
select project_id, project, usage_date, group_value as deployment,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'deployment' and filter_key = '{}';

comment on view bi.usage_by_deployment is 'All usage by deployment, one row a project, day and value.';
\ir ../columns/usage.sql
comment on column bi.usage_by_deployment.deployment is 'The deployment type: self-hosted, hosted, beta; NULL for no value';
