create or replace view bi.usage_filtered as
select project_id, project, usage_date, "grouping", filter, group_value,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_usage where filter_key <> '{}';

comment on view bi.usage_filtered is 'Usage under a filter, one row per project, grouping, filter, day and value. Filters overlap: never add them up.';
