-- The usage by model that has a price, of every series that is shown: a price with conditions is for the rows of the series with just these
-- conditions.
create or replace view usage_export.priced_usage as
select s.project_id, s.project, r.usage_date, r.group_id, p.used_model as model, p.metric, m.quantity,
  usage_export.finality(r.usage_date, s.window_days, sl.closed_at, now()) as finality,
  p.price_id, p.model as price_model, p.filter_key, p.endpoint, p.method, p.deployment, p.currency, p.volume, p.has_tiers, p.unit_price
from usage_export.snapshot_row r
join usage_export.series s using (series_id)
join usage_export.slice sl using (series_id, usage_date)
-- Each row is read once, and compared with the prices of its group. Without "+ 0", and with conditions of their own in place of one
-- expression, the planner would search the index again for each price, series and day.
join usage_export.group_price p on p.group_id = r.group_id + 0
-- A case, as a row for each metric, of which the price's is then chosen, takes several times as long.
cross join lateral (
  select case p.metric {{metric " ": when '$m' then r.$m}} end as quantity
) m
where not r.gone and s.superseded_at is null and s."grouping" = 'model'
  and s.filter_key in (select filter_key from usage_export.price where replaced_at is null)
  and case when p.filter_key <> s.filter_key or r.usage_date < p.valid_from or r.usage_date > p.valid_until then false else m.quantity > 0 end;
