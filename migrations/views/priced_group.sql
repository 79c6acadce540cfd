-- For each group of models and set of conditions with a price in force, the days on which each metric has one.
create or replace view usage_export.priced_group as
select group_id, filter_key,
  range_agg(days) filter (where metric = 'hours') as hours, range_agg(days) filter (where metric = 'total_hours') as total_hours,
  range_agg(days) filter (where metric = 'agent_hours') as agent_hours, range_agg(days) filter (where metric = 'tokens_in') as tokens_in,
  range_agg(days) filter (where metric = 'tokens_out') as tokens_out,
  range_agg(days) filter (where metric = 'tts_characters') as tts_characters, range_agg(days) filter (where metric = 'requests') as requests
from (select group_id, filter_key, metric, daterange(valid_from, valid_until, '[]') as days from usage_export.group_price) price
group by group_id, filter_key;
