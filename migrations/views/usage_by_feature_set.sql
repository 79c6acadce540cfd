create or replace view bi.usage_by_feature_set as
select project_id, project, usage_date, group_value as feature_set,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'feature_set' and filter_key = '{}';

comment on view bi.usage_by_feature_set is 'All usage by feature_set, one row a project, day and value.';
\ir ../columns/usage.sql
comment on column bi.usage_by_feature_set.feature_set is 'The collection of features used; a sorted JSON array where there were several; NULL for no value';
