create or replace view bi.budgets as
select b.name as budget, b.project, b.scope, b.scope_value, b.metric, b.currency,
  b.cost_source,
  b.period, b.period_start, b.period_end, b.amount, b.used, round(b.used / b.amount, 9) as share,
  b.reached[cardinality(b.reached)] as threshold_reached,
  b.forecast, b.forecast_low, b.forecast_high,
  b.days_read, b.days_missing, b.days_not_final, b.has_unpriced, b.is_final
from usage_export.budget_period b;

comment on view bi.budgets is 'Use of each budget, one row per budget and period up to the current one. Budgets of tags or models overlap: never add them up.';
comment on column bi.budgets.budget is 'The budget''s name in the configuration';
comment on column bi.budgets.project is 'The project; NULL for all together';
comment on column bi.budgets.scope is 'all; or key, tag or model for only the usage of scope_value';
comment on column bi.budgets.scope_value is 'The rotation or accessor, the tag or the model';
comment on column bi.budgets.metric is 'The metric, as its column is called, or cost';
comment on column bi.budgets.currency is 'The currency of a cost';
comment on column bi.budgets.cost_source is 'Where a cost is from: billed, estimated, or both';
comment on column bi.budgets.period is 'month or day';
comment on column bi.budgets.period_start is 'The first and the last day of the period, in UTC';
comment on column bi.budgets.period_end is 'The first and the last day of the period, in UTC';
comment on column bi.budgets.amount is 'How much may be used in the period';
comment on column bi.budgets.used is 'What was used on the days that were read, exact; NULL if none was';
comment on column bi.budgets.share is 'used / amount';
comment on column bi.budgets.threshold_reached is 'The highest threshold reached, in percent';
comment on column bi.budgets.forecast is 'The probable use by the end of the current month; NULL for other periods or with too few known days';
comment on column bi.budgets.forecast_low is 'An interval that is meant to be right in four of five months';
comment on column bi.budgets.forecast_high is 'An interval that is meant to be right in four of five months';
comment on column bi.budgets.days_read is 'Days of the period that were read for all projects';
comment on column bi.budgets.days_missing is 'Past days of the period that were not read; their usage is not in used';
comment on column bi.budgets.days_not_final is 'Days that were read and may still change';
comment on column bi.budgets.has_unpriced is 'Whether usage without a price in the currency is left out of used';
comment on column bi.budgets.is_final is 'Whether the period is over and all of its days are final';

