-- The periods of each budget up to the current one, with what was used in each. A function computes the use of a period, so that a query for
-- some budgets or periods reads no days of the others.
create or replace view usage_export.budget_period as
select b.name, b.project, b.project_ids, b.scope, b.scope_value, b.metric, b.currency, b.period, p.period_start, p.period_end,
  b.amount, b.thresholds, u.used, u.has_unpriced,
  array(select threshold from unnest(b.thresholds) as threshold where u.used * 100 >= threshold * b.amount order by threshold) as reached,
  u.forecast, u.forecast_low, u.forecast_high,
  case when b.metric = 'cost' then
    nullif(concat_ws(' and ', case when u.is_billed then 'billed' end, case when u.is_estimated then 'estimated' end), '')
  end as cost_source,
  u.days_read, u.days_missing, u.days_not_final, u.is_final, u.is_settled, u.last_read_at
from usage_export.budget b
cross join (select (now() at time zone 'UTC')::date as today) clock
cross join lateral (
  select first::date as period_start,
    case b.period when 'month' then (first + interval '1 month')::date - 1 else first::date end as period_end
  from generate_series(
    b.valid_from::timestamp, clock.today::timestamp,
    case b.period when 'month' then interval '1 month' else interval '1 day' end
  ) as first
) p
cross join lateral usage_export.budget_use(b.name, b.valid_from, p.period_start, p.period_end) u;
