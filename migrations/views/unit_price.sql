-- The prices, each with its conditions and the price of one unit up to the first tier.
create or replace view usage_export.unit_price as
select p.*,
  p.filter_key::json #>> '{dimensions,endpoint}' as endpoint, p.filter_key::json #>> '{dimensions,method}' as method,
  p.filter_key::json #>> '{dimensions,deployment}' as deployment,
  (select unit_price from usage_export.price_tier t where t.price_id = p.price_id and t.above = 0) as unit_price,
  -- This is the same for all prices of the same usage, whatever their days.
  min(p.price_id) over of_usage as usage_no,
  -- A price without tiers still counts for the month's quantity if the price before or after it has tiers.
  bool_or(exists (select from usage_export.price_tier t where t.price_id = p.price_id and t.above > 0)) over of_usage as has_tiers
from usage_export.price p
window of_usage as (partition by p.metric, p.model, p.filter_key);
