create or replace view bi.usage_forecast as
select f.month, p.project_id, p.project, f.filter, f.unfiltered, f.metric, f.amount, f.forecast, f.low, f.high,
  f.days_known, f.days_not_final, f.days_ahead, f.amount_before, f."grouping"
from (
  select distinct project_id, project from usage_export.series where source = 'usage' and superseded_at is null and retired_at is null
) p
cross join lateral usage_export.project_forecast(p.project_id) f;

comment on view bi.usage_forecast is 'What the current month (in UTC) is expected to amount to, one row per project, filter and metric.';
comment on column bi.usage_forecast.amount is 'The month so far, exact';
comment on column bi.usage_forecast.forecast is 'The expected amount of the whole month; NULL with less than 14 known days';
comment on column bi.usage_forecast.low is 'An interval that is meant to be right in four of five months';
comment on column bi.usage_forecast.high is 'An interval that is meant to be right in four of five months';
comment on column bi.usage_forecast.days_known is 'Days of the month that are not estimated';
comment on column bi.usage_forecast.days_not_final is 'Days of the month that are still read again';
comment on column bi.usage_forecast.days_ahead is 'Days of the month that are estimated';
comment on column bi.usage_forecast.amount_before is 'The exact amount of the month before; NULL if a day of it was not read';
comment on column bi.usage_forecast."grouping" is 'The grouping whose sum is the total';
