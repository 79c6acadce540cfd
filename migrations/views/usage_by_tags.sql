create or replace view bi.usage_by_tags as
select project_id, project, usage_date, group_value as tags,
  {{metric: $m}}, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'tags' and filter_key = '{}';

comment on view bi.usage_by_tags is 'All usage by tags, one row a project, day and value.';
\ir ../columns/usage.sql
comment on column bi.usage_by_tags.tags is 'The set of tags of the requests, a sorted JSON array; its amounts are not split over single tags; NULL for no value';
