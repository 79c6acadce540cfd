-- For each group of models with a price in force, the days on which each metric has one without conditions, and whether there are prices
-- with conditions.
create or replace view usage_export.priced_group as
select group_id, bool_or(filter_key <> '{}') as has_conditions,
  {{metric: range_agg(days) filter (where metric = '$m' and filter_key = '{}') as $m}}
from (select group_id, filter_key, metric, daterange(valid_from, valid_until, '[]') as days from usage_export.group_price) price
group by group_id;
