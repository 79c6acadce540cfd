create or replace view bi.usage_forecast as
select f.month, p.project_id, p.project, f.filter, f.unfiltered, f.metric, f.amount, f.forecast, f.low, f.high,
  f.days_known, f.days_not_final, f.days_ahead, f.amount_before, f."grouping"
from (
  select distinct project_id, project from usage_export.series where source = 'usage' and superseded_at is null and retired_at is null
) p
cross join lateral usage_export.project_forecast(p.project_id) f;

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
