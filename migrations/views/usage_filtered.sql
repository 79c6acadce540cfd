create or replace view bi.usage_filtered as
select project_id, project, usage_date, "grouping", filter, group_value,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where filter_key <> '{}';

comment on view bi.usage_filtered is 'Usage under a filter, one row a project, grouping, filter, day and value. Filters overlap: never add them up.';
\ir ../columns/usage.sql
comment on column bi.usage_filtered."grouping" is 'The dimension the usage is grouped by, or none';
comment on column bi.usage_filtered.filter is 'The filter''s name in the configuration';
comment on column bi.usage_filtered.group_value is 'The value of the grouped dimension; NULL for no value';
