-- For each group of models and set of conditions with a price in force, the days on which each metric has one.
create or replace view usage_export.priced_group as
select group_id, filter_key,
  {{metric: range_agg(days) filter (where metric = '$m') as $m}}
from (select group_id, filter_key, metric, daterange(valid_from, valid_until, '[]') as days from usage_export.group_price) price
group by group_id, filter_key;
