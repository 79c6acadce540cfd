create or replace view bi.cost_by_tags as
select project_id, project, usage_date, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where "grouping" = 'tags' and filter_key = '{}';

comment on view bi.cost_by_tags is 'What the service charges by tags, one row per project, day and value.';
