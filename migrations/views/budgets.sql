create or replace view bi.budgets as
select b.name as budget, b.project, b.scope, b.scope_value, b.metric, b.currency,
  b.cost_source,
  b.period, b.period_start, b.period_end, b.amount, b.used, round(b.used / b.amount, 9) as share,
  b.reached[cardinality(b.reached)] as threshold_reached,
  b.forecast, b.forecast_low, b.forecast_high,
  b.days_read, b.days_missing, b.days_not_final, b.has_unpriced, b.is_final, b.minimum_amount
from usage_export.budget_period b;

comment on view bi.budgets is 'What was used of each budget, one row a budget and period up to the current one. A period is compared with the amount that was configured in it. Of a budget for a tag or a model, usage with several tags or models counts whole: such budgets overlap, never add them up.';
comment on column bi.budgets.budget is 'The budget''s name in the configuration';
comment on column bi.budgets.project is 'The name of the project; NULL for all projects that are exported, together';
comment on column bi.budgets.scope is 'all: all usage; key, tag, model: only that of scope_value';
comment on column bi.budgets.scope_value is 'The rotation or accessor, the tag or the model; NULL for all usage. A tag''s use is the sum over the sets of tags that hold it, a model''s that over the sets of models';
comment on column bi.budgets.metric is 'The metric, by the name of its column in bi.usage_total, or cost';
comment on column bi.budgets.currency is 'The currency of a cost, an ISO 4217 code; NULL for a metric';
comment on column bi.budgets.cost_source is 'Where a cost is from: billed, on days of a project whose billing was read as the budget needs it; estimated on others, by bi.cost_estimated; billed and estimated where days or projects differ; NULL for a metric, and where no day was read';
comment on column bi.budgets.period is 'month or day';
comment on column bi.budgets.period_start is 'The first day of the period, in UTC';
comment on column bi.budgets.period_end is 'The last day of the period, in UTC';
comment on column bi.budgets.amount is 'How much may be used in the period';
comment on column bi.budgets.used is 'How much was used on the days of the period that were read, with minimum_amount, exact; NULL if none was';
comment on column bi.budgets.share is 'used / amount, rounded to 9 digits; 1 where the amount is used up';
comment on column bi.budgets.threshold_reached is 'The highest threshold that is reached, in percent of the amount; NULL if none is';
comment on column bi.budgets.forecast is 'How much will probably be used by the end of the current month; NULL for other periods, or where too few days are known';
comment on column bi.budgets.forecast_low is 'The lower end of the interval in which the forecast ends up 4 times of 5';
comment on column bi.budgets.forecast_high is 'The upper end of that interval';
comment on column bi.budgets.days_read is 'How many days of the period were read for all projects, a count';
comment on column bi.budgets.days_missing is 'How many past days of the period were not read for all projects, a count: their usage is not in used';
comment on column bi.budgets.days_not_final is 'How many days were read and may still change, or could not be read again, a count';
comment on column bi.budgets.has_unpriced is 'Whether a part of the usage has no price in the currency, or no amount where it is billed, and so is not in used; false for a metric';
comment on column bi.budgets.is_final is 'Whether the period is over and every day of it was read and is not read again';
comment on column bi.budgets.minimum_amount is 'The part of used that is lacking so far to the monthly minimum of prices; 0 where nothing, for a day, a model, and a month with billed days; NULL for a metric. A minimum that all projects share counts in budgets of all projects';
