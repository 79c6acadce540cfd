create or replace view bi.cost_filtered as
select project_id, project, usage_date, "grouping", filter, accessor, lineage, deployment, line_item, tags,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where filter_key <> '{}';

comment on view bi.cost_filtered is 'What the service charges under a filter, one row a project, day, grouping, filter and group. Filters overlap: never add them up.';
comment on column bi.cost_filtered.project_id is 'The service''s identifier of the project';
comment on column bi.cost_filtered.project is 'The project''s name in the configuration';
comment on column bi.cost_filtered.usage_date is 'The day that the cost is of, a calendar day in UTC';
comment on column bi.cost_filtered."grouping" is 'The dimensions the cost is grouped by, in alphabetical order with commas between them, or none';
comment on column bi.cost_filtered.filter is 'The filter''s name in the configuration';
comment on column bi.cost_filtered.accessor is 'The public identifier of the API key that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.lineage is 'The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.deployment is 'The deployment type that was used; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.line_item is 'What is paid for, as the service names it, such as streaming::nova-3; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.tags is 'The whole set of tags of the requests, a sorted JSON array; NULL for no value, and where it is not grouped by';
comment on column bi.cost_filtered.amount is 'What the service charges, exactly as sent and not rounded; below 0 for a credit; NULL where it sent none';
comment on column bi.cost_filtered.currency is 'The currency of the amount, an ISO 4217 code: always USD, as the service sends dollars';
comment on column bi.cost_filtered.extra_metrics is 'Numbers the service sent beside the amount, a JSON object; NULL where it sent none';
comment on column bi.cost_filtered.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.cost_filtered.is_final is 'Whether the day is final and its newest reading succeeded: the amount changes no more';
comment on column bi.cost_filtered.fetched_at is 'When the day was last read';
comment on column bi.cost_filtered.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.cost_filtered.first_seen_at is 'When this group was first stored for this day';
comment on column bi.cost_filtered.last_changed_at is 'When a number of this row last changed';
