create or replace view bi.cost_by_line_item as
select project_id, project, usage_date, line_item,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where "grouping" = 'line_item' and filter_key = '{}';

comment on view bi.cost_by_line_item is 'What the service charges by line_item, one row per project, day and value.';
