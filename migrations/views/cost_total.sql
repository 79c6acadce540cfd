create or replace view bi.cost_total as
select project_id, project, usage_date,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where "grouping" = 'none' and filter_key = '{}';

comment on view bi.cost_total is 'What the service charges, one row per project and day: billing with the grouping none.';
