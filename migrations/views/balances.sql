create or replace view bi.balances as
select project_id, project, balance_id, amount, units, purchase_order_id, read_at, last_read_at, ended_at,
  ended_at is null and exists (
    select from usage_export.series s
    where s.project_id = b.project_id and s.source = 'billing' and s.retired_at is null
  ) as is_current
from usage_export.balance b;

comment on view bi.balances is 'What is left to spend, one row a balance and amount: from the first reading that gave the amount to the last one. Read once in each run of an export of billing. The rows with is_current are what is left now; add up over no others.';
\ir ../columns/project.sql
comment on column bi.balances.balance_id is 'The service''s identifier of the balance';
comment on column bi.balances.amount is 'The amount left, exactly as sent; below 0 where it is overdrawn';
comment on column bi.balances.units is 'The unit of the amount as the service writes it, such as usd; NULL where it sent none';
comment on column bi.balances.purchase_order_id is 'The service''s identifier of the purchase that the balance is from; NULL where it sent none';
comment on column bi.balances.read_at is 'When the amount was first read';
comment on column bi.balances.last_read_at is 'When the same amount was last read';
comment on column bi.balances.ended_at is 'When another amount was read, or the service did not list the balance any more; NULL for the newest amount that was read, however long ago';
comment on column bi.balances.is_current is 'Whether this is the newest amount and an export still reads the project''s billing; what is left now is the rows where it is true';
