create or replace view bi.price_book as
select p.price_id, p.metric, p.model, p.filter_key::json #>> '{dimensions,endpoint}' as endpoint,
  p.filter_key::json #>> '{dimensions,method}' as method, p.filter_key::json #>> '{dimensions,deployment}' as deployment,
  p.currency, t.above as tier_above, t.price, p.per, t.unit_price, p.valid_from, p.valid_until,
  p.filter_key as conditions
from usage_export.price p
join usage_export.price_tier t using (price_id);

comment on view bi.price_book is 'The prices of the configuration, one row per price and tier. No two of them price the same usage of a day.';
comment on column bi.price_book.model is 'The model: a name, the beginning of names and *, or *; a sorted JSON array for several at once';
comment on column bi.price_book.endpoint is 'What the price is for; NULL for any';
comment on column bi.price_book.method is 'What the price is for; NULL for any';
comment on column bi.price_book.deployment is 'What the price is for; NULL for any';
comment on column bi.price_book.tier_above is 'The quantity of the month after which the tier begins';
comment on column bi.price_book.price is 'The price as configured; per says for how much';
comment on column bi.price_book.per is 'What the price is for: a number of units, or hour, minute or second';
comment on column bi.price_book.unit_price is 'The price of one unit of the metric, exact';
comment on column bi.price_book.valid_from is 'The first day it is valid for';
comment on column bi.price_book.valid_until is 'The last day it is valid for, if any';
comment on column bi.price_book.conditions is 'endpoint, method and deployment as one JSON object';
