-- The usage by model that has no price, one row per project, day and group with the quantity of each metric that no price is for; NULL or 0 if
-- there is none. unpriced_… is false if another metric of the same usage has a price.
create or replace view usage_export.unpriced_usage as
select r.project_id, r.project, r.usage_date, r.model, r.finality,
  {{metric: r.$m, r.$m > 0 and (r.has_$m or case
    when '$m' = 'requests' then p.has_price is not true
    -- The three kinds of hours measure the same time, and all usage has requests. Tokens and characters are paid for separately.
    when '$m' in ('hours', 'total_hours', 'agent_hours') then p.has_hours_price is not true
    else true
  end) as unpriced_$m}}
from (
  select u.project_id, u.project, u.usage_date, u.group_value as model, u.finality,
    {{metric: case when d.$m is null then u.$m end as $m, d.$m is not null and u.$m > 0 as has_$m}}
  from usage_export.visible_usage u
  left join usage_export.price_period d
    on d.group_id = u.group_id and d.filter_key = u.filter_key and u.usage_date between d.first_day and d.last_day
  -- Without any price there are no rows. If that were a condition by itself, the planner would read the slice of each row.
  where u."grouping" = 'model' and u.filter_key = (select '{}' from usage_export.price limit 1) and d.has_conditions is not true
  union all
  -- The part of the group's usage that no price with conditions is for.
  select u.project_id, max(u.project) filter (where u.filter_key = '{}'), u.usage_date, max(u.group_value),
    max(u.finality) filter (where u.filter_key = '{}'),
    {{metric: sum(case when u.filter_key <> '{}' then -u.$m else u.$m end) filter (where (d.$m is null) = (u.filter_key = '{}')), bool_or(d.$m is not null and u.$m > 0)}}
  from usage_export.visible_usage u
  join usage_export.price_period d
    on d.group_id = u.group_id and d.filter_key = u.filter_key and u.usage_date between d.first_day and d.last_day and d.has_conditions
  where u."grouping" = 'model' and (u.filter_key = '{}' or u.filter_key in (select filter_key from usage_export.price))
  group by u.project_id, u.usage_date, u.group_id
) r
cross join lateral (
  select {{metric " or ": r.has_$m}} as has_price, r.has_hours or r.has_total_hours or r.has_agent_hours as has_hours_price
) p;
