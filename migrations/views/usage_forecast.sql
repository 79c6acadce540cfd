create or replace view bi.usage_forecast as
select date_trunc('month', today::timestamp)::date as month, d.project_id, d.project, d.filter, d.filter_key = '{}' as unfiltered, d.metric,
  f.amount, f.forecast, f.low, f.high, f.days_known, d.days_not_final, f.days_ahead,
  case when d.days_before = today_month.start - previous_month.start then d.amount_before end as amount_before, d."grouping"
from (select (now() at time zone 'UTC')::date as today) as clock
cross join lateral (select date_trunc('month', today::timestamp)::date as start) as today_month
cross join lateral (select (today_month.start - interval '1 month')::date as start) as previous_month
cross join lateral (
  select t.series_id, t.project_id, t.project, t.filter, t.filter_key, t."grouping", t.metric,
    array_agg(t.usage_date) as days, array_agg(t.amount) as amounts,
    -- Of the running day, and of one that was read only before it was over, the numbers are merely the least.
    array_agg(case t.finality when 'open' then 0 when 'settling' then coalesce(k.known_share, 1) else 1 end) as known_shares,
    (count(*) filter (where t.usage_date >= today_month.start and t.finality = 'settling'))::integer as days_not_final,
    count(*) filter (where t.usage_date >= previous_month.start and t.usage_date < today_month.start and t.finality <> 'open') as days_before,
    sum(t.amount) filter (where t.usage_date >= previous_month.start and t.usage_date < today_month.start) as amount_before
  from usage_export.total_day t
  left join usage_export.known_share k on k.series_id = t.series_id and k.metric = t.metric and t.finality = 'settling'
    and k.days_after = (t.fetched_at at time zone 'UTC')::date - t.usage_date
  group by t.series_id, t.project_id, t.project, t.filter, t.filter_key, t."grouping", t.metric
) d
cross join lateral usage_export.month_forecast(today, d.days, d.amounts, d.known_shares) as f;

comment on view bi.usage_forecast is 'What the current month (in UTC) is expected to amount to, one row a project, filter and metric. An estimate: forecast, low and high are never usage. The metrics without usage in the last 100 days are left out.';
comment on column bi.usage_forecast.month is 'The first day of the month, in UTC';
\ir ../columns/project.sql
comment on column bi.usage_forecast.filter is 'The filter''s name in the configuration';
comment on column bi.usage_forecast.unfiltered is 'Whether the filter has no conditions: the row is of all usage of the project';
comment on column bi.usage_forecast.metric is 'The metric, by the name of its column in bi.usage_total';
comment on column bi.usage_forecast.amount is 'What is stored of the month so far, exact, with the running day where it is read';
comment on column bi.usage_forecast.forecast is 'The expected amount of the whole month; NULL with less than 14 known days';
comment on column bi.usage_forecast.low is 'The lower end of the interval in which four of five months are meant to end; NULL as forecast';
comment on column bi.usage_forecast.high is 'The upper end of the interval; NULL as forecast';
comment on column bi.usage_forecast.days_known is 'Days of the month that are over and were read, a count';
comment on column bi.usage_forecast.days_not_final is 'Those of them that are still read again: scaled up by what usually comes later, a count';
comment on column bi.usage_forecast.days_ahead is 'Days of the month that are estimated: to come, running, or not read, a count';
comment on column bi.usage_forecast.amount_before is 'The exact amount of the month before; NULL where a day of it was not read';
comment on column bi.usage_forecast."grouping" is 'The grouping whose sum is the total';
