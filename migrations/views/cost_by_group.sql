create or replace view bi.cost_by_group as
select project_id, project, usage_date, "grouping", accessor, lineage, deployment, line_item, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where filter_key = '{}';

comment on view bi.cost_by_group is 'What the service charges, one row per project, day, grouping and group. Other dimensions than the grouping''s are NULL. Each grouping is the same cost again: choose one.';
