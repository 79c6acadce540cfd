-- How large each weekday is compared with the mean day of its week: the median over the 8 weeks that end with the last day, or 1 for a
-- weekday that is not known. Weeks with less than 4 known days do not count. Weekday 1 is Monday; the mean of the shares is 1.
create or replace function usage_export.weekday_share(days date[], amounts numeric[], last_day date)
returns table (weekday integer, share numeric)
language sql immutable parallel safe
begin atomic
  with history as materialized (
    select amount, extract(isodow from day)::integer as weekday, avg(amount) over of_week as mean, count(*) over of_week as days_known
    from unnest(days, amounts) as stored (day, amount)
    where day <= last_day and day > last_day - 56
    window of_week as (partition by (last_day - day) / 7)
  )
  select weekday, coalesce(share / nullif(avg(share) over (), 0), 1)
  from (
    select weekday, coalesce(usage_export.median(array_agg(h.amount / h.mean) filter (where h.mean > 0 and h.days_known >= 4)), 1) as share
    from generate_series(1, 7) as weekday left join history h using (weekday)
    group by weekday
  ) shares;
end;
