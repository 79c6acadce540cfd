create or replace view bi.cost_by_group as
select project_id, project, usage_date, "grouping", accessor, lineage, deployment, line_item, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where filter_key = '{}';

comment on view bi.cost_by_group is 'What the service charges, by every grouping that is exported, also by several dimensions at once: one row a project, day, grouping and group. Each grouping is the same cost again: choose one, and never add up over several.';
comment on column bi.cost_by_group.project_id is 'The service''s identifier of the project';
comment on column bi.cost_by_group.project is 'The project''s name in the configuration';
comment on column bi.cost_by_group.usage_date is 'The day that the cost is of, a calendar day in UTC';
comment on column bi.cost_by_group."grouping" is 'The dimensions the cost is grouped by, in alphabetical order with commas between them, or none';
comment on column bi.cost_by_group.accessor is 'The public identifier of the API key that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.lineage is 'The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.deployment is 'The deployment type that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.line_item is 'What is paid for, as the service names it, such as streaming::nova-3; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.tags is 'The whole set of tags of the requests, a sorted JSON array; NULL for no value, and where it is not grouped by';
comment on column bi.cost_by_group.amount is 'What the service charges, exactly as sent and not rounded; below 0 for a credit; NULL where it sent none';
comment on column bi.cost_by_group.currency is 'The currency of the amount, an ISO 4217 code: always USD, as the service sends dollars';
comment on column bi.cost_by_group.extra_metrics is 'Numbers the service sent beside the amount, a JSON object; NULL where it sent none';
comment on column bi.cost_by_group.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.cost_by_group.is_final is 'Whether the day is final and its newest reading succeeded: the amount changes no more';
comment on column bi.cost_by_group.fetched_at is 'When the day was last read';
comment on column bi.cost_by_group.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.cost_by_group.first_seen_at is 'When this group was first stored for this day';
comment on column bi.cost_by_group.last_changed_at is 'When a number of this row last changed';
