-- The usage by model that has a price, for every series that is shown. A price with conditions is for the series with just these conditions.
create or replace view usage_export.priced_usage as
select u.project_id, u.project, u.usage_date, u.group_id, p.used_model as model, p.metric, m.quantity, u.finality,
  p.price_id, p.filter_key, p.endpoint, p.method, p.deployment, p.currency, p.usage_no, p.has_tiers, p.unit_price,
  date_trunc('month', u.usage_date::timestamp)::date as month
from usage_export.visible_usage u
-- Each row is read once, and compared with the prices of its group. Without "+ 0" and the single expression, the planner would search the index
-- again for each price, series and day.
join usage_export.group_price p on p.group_id = u.group_id + 0
-- A case is several times as fast as a row for each metric, from which that of the price is chosen.
cross join lateral (
  select case p.metric {{metric " ": when '$m' then u.$m}} end as quantity
) m
where u."grouping" = 'model' and u.filter_key in (select filter_key from usage_export.price)
  and case when p.filter_key <> u.filter_key or u.usage_date < p.valid_from or u.usage_date > p.valid_until then false else m.quantity > 0 end;
