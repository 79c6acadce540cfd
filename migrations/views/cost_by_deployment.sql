create or replace view bi.cost_by_deployment as
select project_id, project, usage_date, deployment,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where "grouping" = 'deployment' and filter_key = '{}';

comment on view bi.cost_by_deployment is 'What the service charges by deployment, one row per project, day and value.';
