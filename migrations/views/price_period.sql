-- For each group of models, the stretches of days with the same prices, one row per stretch and filter, with the price of each metric under that
-- filter. has_conditions: some price with conditions is for a part of the group's usage on these days.
create or replace view usage_export.price_period as
with price as materialized (
  select group_id, filter_key, metric, price_id, valid_from, valid_until from usage_export.group_price
), stretch as (
  select group_id, filter_key, day as first_day, coalesce(lead(day) over (partition by group_id, filter_key order by day) - 1, 'infinity') as last_day
  from (
    select p.group_id, f.filter_key, d.day
    from price p
    cross join lateral (values ('{}'), (p.filter_key)) as f (filter_key)
    cross join lateral (values (p.valid_from), (p.valid_until + 1)) as d (day)
    where d.day is not null
    group by p.group_id, f.filter_key, d.day
  ) change
)
select s.group_id, s.filter_key, s.first_day, s.last_day, bool_or(p.filter_key <> '{}') as has_conditions,
  {{metric: max(p.price_id) filter (where p.metric = '$m' and p.filter_key = s.filter_key) as $m}}
from stretch s
join price p on p.group_id = s.group_id and s.filter_key in ('{}', p.filter_key)
  and p.valid_from <= s.first_day and coalesce(p.valid_until >= s.first_day, true)
group by s.group_id, s.filter_key, s.first_day, s.last_day;
