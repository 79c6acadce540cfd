create or replace view bi.cost_filtered as
select project_id, project, usage_date, "grouping", filter, accessor, lineage, deployment, line_item, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where filter_key <> '{}';

comment on view bi.cost_filtered is 'What the service charges under a filter, one row a project, day, grouping, filter and group. Filters overlap: never add them up.';
\ir ../columns/cost.sql
comment on column bi.cost_filtered."grouping" is 'The dimensions the cost is grouped by, in alphabetical order with commas between them, or none';
comment on column bi.cost_filtered.filter is 'The filter''s name in the configuration';
comment on column bi.cost_filtered.accessor is 'The public identifier of the API key that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.lineage is 'The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.deployment is 'The deployment type that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.line_item is 'What is paid for, as the service names it, such as streaming::nova-3; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.tags is 'The whole set of tags of the requests, a sorted JSON array; NULL for no value, and where it is not grouped by';
