-- The prices, each with the groups of models that it covers and their names, its conditions, and the price of one unit up to the first tier.
-- Because of "offset 0", a price is compared with each model once, and not with each row of usage. For a materialized query the planner would
-- have no statistics of the columns.
create or replace view usage_export.group_price as
select g.group_id, g.display as used_model, p.*
from (
  select p.*,
    p.filter_key::json #>> '{dimensions,endpoint}' as endpoint, p.filter_key::json #>> '{dimensions,method}' as method,
    p.filter_key::json #>> '{dimensions,deployment}' as deployment,
    (select unit_price from usage_export.price_tier t where t.price_id = p.price_id and t.above = 0) as unit_price,
    -- This is the same for all prices of the same usage, whatever their days.
    min(p.price_id) over of_usage as usage_no,
    -- A price without tiers still counts for the month's quantity if the price before or after it has tiers.
    bool_or(exists (select from usage_export.price_tier t where t.price_id = p.price_id and t.above > 0)) over of_usage as has_tiers
  from usage_export.price p
  window of_usage as (partition by p.metric, p.model, p.filter_key)
) p
join usage_export.group_value g on g."grouping" = 'model' and case
  when p.model = '*' then true
  when g.display is null then false
  when right(p.model, 1) <> '*' then g.display = p.model
  -- Postgres can't read this character from JSON.
  when position('\u0000' in g.group_key) > 0 then false
  else not exists (
    select from json_array_elements_text(g.group_key::json) as member
    where not coalesce(starts_with(member, left(p.model, -1)), false)
  )
end
offset 0;
