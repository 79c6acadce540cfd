create or replace view bi.cost_filtered as
select project_id, project, usage_date, "grouping", filter, accessor, lineage, deployment, line_item, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where filter_key <> '{}';

comment on view bi.cost_filtered is 'What the service charges under a filter, one row per project, day, grouping, filter and group. Filters overlap: never add them up.';
