-- Comments on the columns of every view of cost a day. A view includes them by: \ir ../columns/cost.sql
\ir ../columns/project.sql
\ir ../columns/row_history.sql
comment on column :view.usage_date is 'The day that the cost is of, a calendar day in UTC';
comment on column :view.amount is 'What the service charges, exactly as sent and not rounded; below 0 for a credit; NULL where it sent none';
comment on column :view.currency is 'The currency of the amount, an ISO 4217 code: always USD, as the service sends dollars';
comment on column :view.extra_metrics is 'Numbers the service sent beside the amount, a JSON object; NULL where it sent none';
comment on column :view.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column :view.is_final is 'Whether the day is final and its newest reading succeeded: the amount changes no more';
comment on column :view.fetched_at is 'When the day was last read';
