create or replace view bi.balances as
select project_id, project, balance_id, amount, units, purchase_order_id, read_at, last_read_at, ended_at
from usage_export.balance;

comment on view bi.balances is 'What is left to spend, one row a balance and amount: from the first reading that gave the amount to the last one. Read once in each run of an export of billing. The rows without ended_at are the newest; add up over no others.';
comment on column bi.balances.project_id is 'The service''s identifier of the project';
comment on column bi.balances.project is 'The project''s name in the configuration';
comment on column bi.balances.balance_id is 'The service''s identifier of the balance';
comment on column bi.balances.amount is 'The amount left, exactly as sent; below 0 where it is overdrawn';
comment on column bi.balances.units is 'The unit of the amount as the service writes it, such as usd; NULL where it sent none';
comment on column bi.balances.purchase_order_id is 'The service''s identifier of the purchase that the balance is from; NULL where it sent none';
comment on column bi.balances.read_at is 'When the amount was first read';
comment on column bi.balances.last_read_at is 'When the same amount was last read';
comment on column bi.balances.ended_at is 'When another amount was read, or the service did not list the balance any more; NULL for the newest amount';

do $$
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'usage_reader') then
    grant select on bi.balances to usage_reader;
  end if;
end
$$;
