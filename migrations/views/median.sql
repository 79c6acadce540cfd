-- The exact median, NULL without amounts: percentile_cont would go through a double.
create or replace function usage_export.median(amounts numeric[])
returns numeric language sql immutable parallel safe
begin atomic
  select avg(amount)
  from (
    select amount, row_number() over (order by amount) as position, count(*) over () as amount_count
    from unnest(amounts) as amount where amount is not null
  ) sorted
  where position in ((amount_count + 1) / 2, amount_count / 2 + 1);
end;
