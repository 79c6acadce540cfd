-- The usage that has a price: a price with conditions is for the rows of the series with just these conditions.
-- The "+ 0" keeps the planner from searching every day of the index for each model of each price, which takes four times as long.
create or replace view usage_export.priced_usage as
select u.project_id, u.project, u.usage_date, u.group_id, u.model, u.metric, u.quantity, u.finality,
  p.price_id, p.model as price_model, p.filter_key, p.currency, p.volume, p.has_tiers
from usage_export.model_usage u
join usage_export.group_price p on p.group_id = u.group_id + 0 and p.metric = u.metric and p.filter_key = u.filter_key
  -- In one expression: as two, the planner would look for the days of each price in the index, for each of its models again.
  and case when u.usage_date < p.valid_from or u.usage_date > p.valid_until then false else true end;
