create or replace view bi.cost_total as
select project_id, project, usage_date,
  dollars as amount, 'USD' as currency, extra_metrics, finality, is_final, fetched_at, revision, first_seen_at, last_changed_at
from usage_export.visible_cost where "grouping" = 'none' and filter_key = '{}';

comment on view bi.cost_total is 'What the service charges, one row a project and day. Of projects with an export of billing that groups by none.';
comment on column bi.cost_total.project_id is 'The service''s identifier of the project';
comment on column bi.cost_total.project is 'The project''s name in the configuration';
comment on column bi.cost_total.usage_date is 'The day that the cost is of, a calendar day in UTC';
comment on column bi.cost_total.amount is 'What the service charges, exactly as sent and not rounded; below 0 for a credit; NULL where it sent none';
comment on column bi.cost_total.currency is 'The currency of the amount, an ISO 4217 code: always USD, as the service sends dollars';
comment on column bi.cost_total.extra_metrics is 'Numbers the service sent beside the amount, a JSON object; NULL where it sent none';
comment on column bi.cost_total.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.cost_total.is_final is 'Whether the day is final and its newest reading succeeded: the amount changes no more';
comment on column bi.cost_total.fetched_at is 'When the day was last read';
comment on column bi.cost_total.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.cost_total.first_seen_at is 'When this group was first stored for this day';
comment on column bi.cost_total.last_changed_at is 'When a number of this row last changed';
