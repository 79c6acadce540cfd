create or replace view bi.cost_by_group as
select project_id, project, usage_date, "grouping", accessor, lineage, deployment, line_item, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where filter_key = '{}';

comment on view bi.cost_by_group is 'What the service charges, by every grouping that is exported, also by several dimensions at once: one row a project, day, grouping and group. Each grouping is the same cost again: choose one, and never add up over several.';
\ir ../columns/cost.sql
comment on column bi.cost_by_group."grouping" is 'The dimensions the cost is grouped by, in alphabetical order with commas between them, or none';
comment on column bi.cost_by_group.accessor is 'The public identifier of the API key that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.lineage is 'The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.deployment is 'The deployment type that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.line_item is 'What is paid for, as the service names it, such as streaming::nova-3; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.tags is 'The whole set of tags of the requests, a sorted JSON array; NULL for no value, and where it is not grouped by';
