create or replace view bi.usage_by_model as
select project_id, project, usage_date, group_value as model,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'model' and filter_key = '{}';

comment on view bi.usage_by_model is 'All usage by model, one row a project, day and value.';
\ir ../columns/usage.sql
comment on column bi.usage_by_model.model is 'The model used; a sorted JSON array where there were several; NULL for no value';
