create or replace view bi.cost_estimated as
select c.project_id, c.project, c.usage_date, c.model, c.endpoint, c.method, c.deployment,
  c.metric, c.status, c.currency, c.quantity, c.price, c.quantity * c.price as amount, c.tier_above, c.price_id, c."grouping", c.finality,
  c.month
from (
  -- A query with a condition on the currency or the status reads only the parts that can have it.
  select u.project_id, u.project, u.usage_date, u.model, u.endpoint, u.method, u.deployment, u.metric, 'priced' as status,
    u.currency, u.quantity, u.unit_price as price, 0::numeric as tier_above, u.price_id, 'model' as "grouping", u.finality, u.month
  from usage_export.priced_usage u
  where not u.has_tiers
  union all
  select u.project_id, u.project, u.usage_date, u.model, null, null, null, m.metric, case when m.is_unpriced then 'unpriced' else 'other_metric' end,
    null, m.quantity, null, null, null, 'model', u.finality, date_trunc('month', u.usage_date::timestamp)::date
  from usage_export.unpriced_usage u
  cross join lateral (values
    {{metric: ('$m', u.$m, u.unpriced_$m)}}
  ) as m (metric, quantity, is_unpriced)
  where m.quantity > 0
  union all
  -- Prices with tiers need sums over whole months, so only a condition on the month limits this part. A condition on the day limits the others.
  select u.project_id, u.project, u.usage_date, u.model, u.endpoint, u.method, u.deployment, u.metric, 'priced', u.currency,
    least(u.through, t.below) - greatest(u.through - u.quantity, t.above), t.unit_price, t.above, u.price_id, 'model', u.finality, u.month
  from (
    -- The month's quantity up to this row: within a day the projects and models come in a fixed order. A new price does not begin a new sum.
    select p.*, sum(p.quantity) over (
      partition by p.usage_no, p.month order by p.usage_date, p.project_id collate "C", p.model collate "C", p.group_id rows unbounded preceding
    ) as through
    from usage_export.priced_usage p
    where p.has_tiers
  ) u
  join usage_export.price_tier t
    on t.price_id = u.price_id and t.above < u.through and coalesce(t.below > u.through - u.quantity, true)
  union all
  -- The usage of a day that was not read by model, less what is priced from filtered series.
  select s.project_id, s.project, sl.usage_date, null, null, null, null, m.metric, 'unpriced', null, m.quantity, null, null, null, 'none',
    usage_export.finality(sl.usage_date, s.window_days, sl.closed_at, now()), date_trunc('month', sl.usage_date::timestamp)::date
  from usage_export.series s
  join usage_export.slice sl using (series_id)
  join usage_export.slice_row r on r.series_id = sl.series_id and r.usage_date = sl.usage_date and not r.gone
  cross join lateral (
    select {{metric: coalesce(sum(p.quantity) filter (where p.metric = '$m'), 0) as $m}}
    from usage_export.priced_usage p
    where p.project_id = s.project_id and p.usage_date = sl.usage_date
  ) priced
  cross join lateral (values
    {{metric: ('$m', r.$m - priced.$m)}}
  ) as m (metric, quantity)
  where s.source = 'usage' and s."grouping" = 'none' and s.filter_key = '{}' and s.superseded_at is null and m.quantity > 0
    and exists (select from usage_export.price) and not exists (
      select from usage_export.series by_model join usage_export.slice read using (series_id)
      where by_model.project_id = s.project_id and by_model."grouping" = 'model' and by_model.filter_key = '{}'
        and by_model.superseded_at is null and read.usage_date = sl.usage_date and read.fetch_no > 0
    )
) c;

comment on view bi.cost_estimated is 'What usage costs by the price book, one row per project, day, model, price, metric and tier. The amounts of a currency may be added up.';
comment on column bi.cost_estimated.endpoint is 'What the price is for; NULL for any';
comment on column bi.cost_estimated.method is 'What the price is for; NULL for any';
comment on column bi.cost_estimated.deployment is 'What the price is for; NULL for any';
comment on column bi.cost_estimated.status is 'priced; unpriced; other_metric: another metric of the same usage has a price';
comment on column bi.cost_estimated.quantity is 'How much, in the unit of the metric';
comment on column bi.cost_estimated.price is 'The price of one unit of the metric; NULL without one';
comment on column bi.cost_estimated.amount is 'quantity * price, not rounded; NULL without a price';
comment on column bi.cost_estimated.tier_above is 'The quantity of the month after which the tier begins';
comment on column bi.cost_estimated."grouping" is 'model, or none if the day was not read by model';
