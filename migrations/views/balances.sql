create or replace view bi.balances as
select project_id, project, balance_id, amount, units, purchase_order_id, read_at, last_read_at, ended_at,
  ended_at is null and exists (
    select from usage_export.series s
    where s.project_id = b.project_id and s.source = 'billing' and s.retired_at is null
  ) as is_current
from usage_export.balance b;

comment on view bi.balances is 'What is left to spend, one row per balance and amount. Add up only rows with is_current.';
comment on column bi.balances.balance_id is 'The service''s identifier of the balance';
comment on column bi.balances.amount is 'The amount left, exactly as sent; below 0 if overdrawn';
comment on column bi.balances.units is 'The unit of the amount, such as usd';
comment on column bi.balances.purchase_order_id is 'The service''s identifier of the purchase';
comment on column bi.balances.read_at is 'When the amount was first read, and last';
comment on column bi.balances.last_read_at is 'When the amount was first read, and last';
comment on column bi.balances.ended_at is 'When another amount replaced it; NULL for the newest';
comment on column bi.balances.is_current is 'Whether it is the newest amount, of a project whose billing is still read';
