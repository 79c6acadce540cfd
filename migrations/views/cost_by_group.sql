create or replace view bi.cost_by_group as
select project_id, project, usage_date, "grouping", accessor, lineage, deployment, line_item, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where filter_key = '{}';

comment on view bi.cost_by_group is 'What the service charges, one row per project, day, grouping and group. Dimensions that are not in the grouping are NULL. Each grouping has the whole cost again: choose one.';
