create or replace view bi.price_book as
select p.price_id, p.metric, p.model, p.filter_key::json #>> '{dimensions,endpoint}' as endpoint,
  p.filter_key::json #>> '{dimensions,method}' as method, p.filter_key::json #>> '{dimensions,deployment}' as deployment,
  p.currency, t.above as tier_above, t.price, p.per, t.unit_price, p.minimum, p.volume, p.valid_from, p.valid_until,
  p.recorded_at, p.recorded_by, p.replaced_at, p.filter_key as conditions
from usage_export.price p
join usage_export.price_tier t using (price_id);

comment on view bi.price_book is 'The prices, one row a version and tier. In force are those without replaced_at; no two of them price the same usage of a day.';
comment on column bi.price_book.price_id is 'The version of the price';
comment on column bi.price_book.metric is 'The metric that is priced, by the name of its column in bi.usage_total';
comment on column bi.price_book.model is 'The model that is priced: a name; the beginning of names and *; * for any usage; a sorted JSON array for the use of several models at once';
comment on column bi.price_book.endpoint is 'The endpoint that the price is for; NULL for any';
comment on column bi.price_book.method is 'The processing method that the price is for; NULL for any';
comment on column bi.price_book.deployment is 'The deployment type that the price is for; NULL for any';
comment on column bi.price_book.currency is 'The currency, an ISO 4217 code';
comment on column bi.price_book.tier_above is 'The quantity of a calendar month after which the tier begins, in the unit of the metric; 0 for the first';
comment on column bi.price_book.price is 'The price as configured, for as much as per says';
comment on column bi.price_book.per is 'How much the price is for: a number of units of the metric, or hour, minute or second';
comment on column bi.price_book.unit_price is 'The price of one unit of the metric, exact';
comment on column bi.price_book.minimum is 'The least amount of a calendar month; NULL where there is none';
comment on column bi.price_book.volume is 'Whose quantities count together for tiers and minimum: account for all projects, or project';
comment on column bi.price_book.valid_from is 'The first day it is valid for';
comment on column bi.price_book.valid_until is 'The last day it is valid for; NULL without an end';
comment on column bi.price_book.recorded_at is 'When this version was stored';
comment on column bi.price_book.recorded_by is 'The program and machine that stored it';
comment on column bi.price_book.replaced_at is 'When another version took its place; NULL while it is in force';
comment on column bi.price_book.conditions is 'endpoint, method and deployment as one JSON object, as in bi.coverage: the price is for the series by model with just these conditions';
