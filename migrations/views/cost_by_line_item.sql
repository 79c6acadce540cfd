create or replace view bi.cost_by_line_item as
select project_id, project, usage_date, line_item,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where "grouping" = 'line_item' and filter_key = '{}';

comment on view bi.cost_by_line_item is 'What the service charges by line item, one row a project, day and value.';
comment on column bi.cost_by_line_item.project_id is 'The service''s identifier of the project';
comment on column bi.cost_by_line_item.project is 'The project''s name in the configuration';
comment on column bi.cost_by_line_item.usage_date is 'The day that the cost is of, a calendar day in UTC';
comment on column bi.cost_by_line_item.line_item is 'What is paid for, as the service names it, such as streaming::nova-3; NULL for no value';
comment on column bi.cost_by_line_item.amount is 'What the service charges, exactly as sent and not rounded; below 0 for a credit; NULL where it sent none';
comment on column bi.cost_by_line_item.currency is 'The currency of the amount, an ISO 4217 code: always USD, as the service sends dollars';
comment on column bi.cost_by_line_item.extra_metrics is 'Numbers the service sent beside the amount, a JSON object; NULL where it sent none';
comment on column bi.cost_by_line_item.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.cost_by_line_item.is_final is 'Whether the day is final and its newest reading succeeded: the amount changes no more';
comment on column bi.cost_by_line_item.fetched_at is 'When the day was last read';
comment on column bi.cost_by_line_item.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.cost_by_line_item.first_seen_at is 'When this group was first stored for this day';
comment on column bi.cost_by_line_item.last_changed_at is 'When a number of this row last changed';
