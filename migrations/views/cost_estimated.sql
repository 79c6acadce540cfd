create or replace view bi.cost_estimated as
select c.project_id, c.project, c.usage_date, c.model, c.endpoint, c.method, c.deployment,
  c.metric, c.status, c.currency, c.quantity, c.price, c.quantity * c.price as amount, c.tier_above, c.price_id, c."grouping", c.finality,
  c.month
from (
  -- What a condition on the currency or the status leaves out is not read.
  select u.project_id, u.project, u.usage_date, u.model, u.endpoint, u.method, u.deployment, u.metric, 'priced' as status,
    u.currency, u.quantity, u.unit_price as price, 0::numeric as tier_above, u.price_id, 'model' as "grouping", u.finality, u.month
  from usage_export.priced_usage u
  where not u.has_tiers
  union all
  select u.project_id, u.project, u.usage_date, u.group_value, null, null, null, m.metric,
    -- The three kinds of hours measure the same time, and all usage has requests. Tokens and characters are paid for separately.
    case
      when m.metric = 'requests' and ({{metric " or ": d.$m is not null and u.$m > 0}}) then 'other_metric'
      when m.metric in ('hours', 'total_hours', 'agent_hours')
        and (d.hours is not null and u.hours > 0 or d.total_hours is not null and u.total_hours > 0 or d.agent_hours is not null and u.agent_hours > 0) then 'other_metric'
      else 'unpriced'
    end,
    null, m.quantity, null, null, null, 'model', u.finality, date_trunc('month', u.usage_date::timestamp)::date
  from usage_export.visible_usage u
  left join usage_export.price_period d
    on d.group_id = u.group_id and d.filter_key = u.filter_key and u.usage_date between d.first_day and d.last_day
  cross join lateral (values
    {{metric: ('$m', case when d.$m is null then u.$m end)}}
  ) as m (metric, quantity)
  -- Nothing without any price. As a condition by itself that would make the planner read the slice of each row.
  where u."grouping" = 'model' and u.filter_key = (select '{}' from usage_export.price limit 1) and d.has_conditions is not true
    and m.quantity > 0
  union all
  -- Prices with tiers need sums over a month, which only conditions on the month limit. All other rows are limited by conditions on the day.
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
  -- The part of the group's usage that no price with conditions is for.
  select r.project_id, r.project, r.usage_date, r.model, null, null, null, m.metric,
    case
      when m.is_priced then 'unpriced'
      when m.metric = 'requests' and ({{metric " or ": r.has_$m}}) then 'other_metric'
      when m.metric in ('hours', 'total_hours', 'agent_hours') and (r.has_hours or r.has_total_hours or r.has_agent_hours) then 'other_metric'
      else 'unpriced'
    end,
    null, m.quantity, null, null, null, 'model', r.finality, date_trunc('month', r.usage_date::timestamp)::date
  from (
    select u.project_id, max(u.project) filter (where u.filter_key = '{}') as project, u.usage_date, max(u.group_value) as model,
      max(u.finality) filter (where u.filter_key = '{}') as finality,
      {{metric: sum(case when u.filter_key <> '{}' then -u.$m else u.$m end) filter (where (d.$m is null) = (u.filter_key = '{}')) as $m, bool_or(d.$m is not null and u.$m > 0) as has_$m}}
    from usage_export.visible_usage u
    join usage_export.price_period d
      on d.group_id = u.group_id and d.filter_key = u.filter_key and u.usage_date between d.first_day and d.last_day and d.has_conditions
    where u."grouping" = 'model' and (u.filter_key = '{}' or u.filter_key in (select filter_key from usage_export.price))
    group by u.project_id, u.usage_date, u.group_id
  ) r
  cross join lateral (values
    {{metric: ('$m', r.$m, r.has_$m)}}
  ) as m (metric, quantity, is_priced)
  where m.quantity > 0
  union all
  -- The usage of a day that was not read by model, without what filtered series price.
  select s.project_id, s.project, sl.usage_date, null, null, null, null, m.metric, 'unpriced', null, m.quantity, null, null, null, 'none',
    usage_export.finality(sl.usage_date, s.window_days, sl.closed_at, now()), date_trunc('month', sl.usage_date::timestamp)::date
  from usage_export.series s
  join usage_export.slice sl using (series_id)
  join usage_export.snapshot_row r on r.series_id = sl.series_id and r.usage_date = sl.usage_date and not r.gone
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

comment on view bi.cost_estimated is 'What usage costs by the price book, one row a project, day, model, price, metric and tier. The amounts of a currency may be added up.';
comment on column bi.cost_estimated.endpoint is 'What the price is for; NULL for any';
comment on column bi.cost_estimated.method is 'What the price is for; NULL for any';
comment on column bi.cost_estimated.deployment is 'What the price is for; NULL for any';
comment on column bi.cost_estimated.status is 'priced; unpriced; other_metric: another metric of the same usage has a price';
comment on column bi.cost_estimated.quantity is 'How much, in the unit of the metric';
comment on column bi.cost_estimated.price is 'The price of one unit of the metric; NULL without one';
comment on column bi.cost_estimated.amount is 'quantity * price, not rounded; NULL without a price';
comment on column bi.cost_estimated.tier_above is 'The quantity of the month after which the tier begins';
comment on column bi.cost_estimated."grouping" is 'model, or none if the day was not read by model';
