-- The forecasts of one project. Like usage_export.budget_use, the function has a plan of its own: the planner expects ten times as many rows as
-- are read, and would compile (JIT) the plan of a short query.
create or replace function usage_export.project_forecast(of_project text)
returns table (
  month date, filter text, unfiltered boolean, metric text, amount numeric, forecast numeric, low numeric, high numeric,
  days_known integer, days_not_final integer, days_ahead integer, amount_before numeric, "grouping" text
)
language sql stable strict security definer set search_path = pg_catalog, pg_temp set jit = off cost 5000 rows 4
begin atomic
select date_trunc('month', today::timestamp)::date as month, d.filter, d.filter_key = '{}' as unfiltered, d.metric,
  f.amount, f.forecast, f.low, f.high, f.days_known, d.days_not_final, f.days_ahead,
  case when d.days_before = today_month.start - previous_month.start then d.amount_before end as amount_before, d."grouping"
from (select (now() at time zone 'UTC')::date as today) as clock
cross join lateral (select date_trunc('month', today::timestamp)::date as start) as today_month
cross join lateral (select (today_month.start - interval '1 month')::date as start) as previous_month
cross join lateral (
  select t.series_id, t.filter, t.filter_key, t."grouping", t.metric,
    array_agg(t.usage_date) as days, array_agg(t.amount) as amounts,
    array_agg(usage_export.is_known(t.usage_date, t.finality, t.fetched_at)) as are_known,
    (count(*) filter (where t.usage_date >= today_month.start and t.finality = 'settling'))::integer as days_not_final,
    count(*) filter (where t.usage_date >= previous_month.start and t.usage_date < today_month.start and t.finality <> 'open') as days_before,
    sum(t.amount) filter (where t.usage_date >= previous_month.start and t.usage_date < today_month.start) as amount_before
  from usage_export.total_day t
  where t.project_id = of_project
  group by t.series_id, t.filter, t.filter_key, t."grouping", t.metric
) d
cross join lateral usage_export.month_forecast(today, d.days, d.amounts, d.are_known) as f;
end;
