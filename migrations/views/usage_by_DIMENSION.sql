-- One view for each dimension of usage, such as bi.usage_by_model. {{metric}} stands for all columns of numbers.
create or replace view bi.usage_by_DIMENSION as
select project_id, project, usage_date, group_value as DIMENSION,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_usage where "grouping" = 'DIMENSION' and filter_key = '{}';

comment on view bi.usage_by_DIMENSION is 'All usage by DIMENSION, one row per project, day and value.';
