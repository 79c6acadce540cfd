create or replace view bi.usage_total as
select project_id, project, usage_date,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_usage where "grouping" = 'none' and filter_key = '{}';

comment on view bi.usage_total is 'All usage, one row per project and day.';
