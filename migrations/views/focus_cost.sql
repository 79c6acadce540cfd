-- Of a project and day either what the service billed, from one grouping, or the estimate: nothing is there twice.
create or replace view bi.focus_cost as
select c.cost as "BilledCost", c.cost as "EffectiveCost", c.cost as "ListCost", c.cost as "ContractedCost",
  c.currency as "BillingCurrency", c.project_id as "BillingAccountId", c.project as "BillingAccountName",
  date_trunc('month', c.usage_date::timestamp) at time zone 'UTC' as "BillingPeriodStart",
  (date_trunc('month', c.usage_date::timestamp) + interval '1 month') at time zone 'UTC' as "BillingPeriodEnd",
  c.usage_date::timestamp at time zone 'UTC' as "ChargePeriodStart",
  (c.usage_date + 1)::timestamp at time zone 'UTC' as "ChargePeriodEnd",
  case when c.cost < 0 then 'Credit' else 'Usage' end as "ChargeCategory", null::text as "ChargeClass",
  c.description as "ChargeDescription", 'Usage-Based' as "ChargeFrequency", 'Standard' as "PricingCategory",
  c.quantity as "PricingQuantity", c.unit as "PricingUnit", c.price as "ContractedUnitPrice",
  c.quantity as "ConsumedQuantity", c.unit as "ConsumedUnit", c.sku as "SkuId", c.sku_price as "SkuPriceId",
  'AI and Machine Learning' as "ServiceCategory", 'Natural Language Processing' as "ServiceSubcategory",
  'Speech processing' as "ServiceName", 'Deepgram' as "ProviderName", 'Deepgram' as "PublisherName",
  'Deepgram' as "InvoiceIssuerName", c.project_id as "SubAccountId", c.project as "SubAccountName",
  c.accessor as "ResourceId", coalesce(nullif(l.comment, ''), k.comment) as "ResourceName",
  case when c.accessor is not null then 'API key' end as "ResourceType", c.tags as "Tags",
  c.source as "x_CostSource", c.usage_date as "x_UsageDate", c.model as "x_Model", c.metric as "x_Metric",
  c."grouping" as "x_Grouping", c.finality as "x_Finality"
from (
  select b.project_id, b.project, b.usage_date, 'billed' as source, b."grouping", 'USD' as currency, b.dollars as cost,
    coalesce(b.line_item, 'All usage') as description, null::numeric as quantity, null as unit, null::numeric as price,
    b.line_item as sku, b.line_item as sku_price, b.accessor,
    (
      select jsonb_object_agg(tag, true)
      from json_array_elements_text(case when strpos(b.tags, '\u0000') = 0 then b.tags end::json) as tag where tag is not null
    ) as tags,
    null as model, null as metric, b.finality
  from usage_export.visible_cost b
  join usage_export.billed_day d using (project_id, usage_date, "grouping")
  where b.filter_key = '{}'
  union all
  select e.project_id, e.project, e.usage_date, 'estimated', e."grouping", e.currency, e.amount,
    coalesce(e.model, 'no model') || ': ' || m.description, e.quantity, m.unit, e.price,
    p.model || ' ' || p.metric || case when p.filter_key <> '{}' then ' ' || p.filter_key else '' end,
    p.price_id || '-' || trim_scale(e.tier_above), null, null, e.model, e.metric, e.finality
  from bi.cost_estimated e
  join usage_export.price p using (price_id)
  join (values
    {{metric: ('$m', '$unit', '$what')}}
  ) as m (metric, unit, description) on m.metric = e.metric
  where e.price_id is not null and not exists (
    select from usage_export.billed_day d where d.project_id = e.project_id and d.usage_date = e.usage_date
  )
) c
left join usage_export.api_key k on k.project_id = c.project_id and k.api_key_id = c.accessor
left join usage_export.listed_key l on l.project_id = c.project_id and l.api_key_id = c.accessor;

comment on view bi.focus_cost is 'What usage costs in the column names of FOCUS 1.1 (focus.finops.org), with its mandatory columns: one row a charge. Of a project and day either what the service billed or, where no billing was read or a charge of it has no amount, the estimate by the configured prices; never both. Usage without a price has no row. The gaps against FOCUS are in docs/bi-views.md.';
comment on column bi.focus_cost."BilledCost" is 'What is invoiced: the amount of the service''s billing, or where x_CostSource is estimated the estimate, exact and not rounded; below 0 for a credit';
comment on column bi.focus_cost."EffectiveCost" is 'As BilledCost: prepayments and commitments are not known';
comment on column bi.focus_cost."ListCost" is 'As BilledCost: list prices are not known';
comment on column bi.focus_cost."ContractedCost" is 'As BilledCost; where it is estimated, ContractedUnitPrice * PricingQuantity exactly';
comment on column bi.focus_cost."BillingCurrency" is 'The currency of every cost of the row, an ISO 4217 code';
comment on column bi.focus_cost."BillingAccountId" is 'The service''s identifier of the project, which is what it bills';
comment on column bi.focus_cost."BillingAccountName" is 'The project''s name in the configuration';
comment on column bi.focus_cost."BillingPeriodStart" is 'The first moment of the calendar month in UTC that the day is in';
comment on column bi.focus_cost."BillingPeriodEnd" is 'The first moment of the next calendar month in UTC: it does not belong to it';
comment on column bi.focus_cost."ChargePeriodStart" is 'The first moment of the day, midnight in UTC';
comment on column bi.focus_cost."ChargePeriodEnd" is 'The first moment after the day, the next midnight in UTC: it does not belong to it';
comment on column bi.focus_cost."ChargeCategory" is 'Usage; Credit where the amount is below 0';
comment on column bi.focus_cost."ChargeClass" is 'Always NULL: a restated day replaces its rows and is no correction';
comment on column bi.focus_cost."ChargeDescription" is 'What the charge is for: the line item of the billing, or the model and the metric';
comment on column bi.focus_cost."ChargeFrequency" is 'Always Usage-Based';
comment on column bi.focus_cost."PricingCategory" is 'Always Standard: tiers are part of it, and commitments are not known';
comment on column bi.focus_cost."PricingQuantity" is 'How much is priced, in PricingUnit; NULL where x_CostSource is billed, as billing has no quantities';
comment on column bi.focus_cost."PricingUnit" is 'Hours, Tokens, Characters or Requests; NULL where x_CostSource is billed';
comment on column bi.focus_cost."ContractedUnitPrice" is 'The configured price of one PricingUnit; NULL where x_CostSource is billed';
comment on column bi.focus_cost."ConsumedQuantity" is 'As PricingQuantity';
comment on column bi.focus_cost."ConsumedUnit" is 'As PricingUnit';
comment on column bi.focus_cost."SkuId" is 'What is sold: the line item of the billing, or the model, metric and conditions of the configured price; NULL where billing is not read by line item';
comment on column bi.focus_cost."SkuPriceId" is 'The unit price: the configured price''s version and tier; as SkuId where x_CostSource is billed';
comment on column bi.focus_cost."ServiceCategory" is 'Always AI and Machine Learning';
comment on column bi.focus_cost."ServiceSubcategory" is 'Always Natural Language Processing';
comment on column bi.focus_cost."ServiceName" is 'Always Speech processing: neither billing nor usage names a service';
comment on column bi.focus_cost."ProviderName" is 'Always Deepgram, whose interface this is';
comment on column bi.focus_cost."PublisherName" is 'Always Deepgram';
comment on column bi.focus_cost."InvoiceIssuerName" is 'Always Deepgram: that somebody else resells the service is not known';
comment on column bi.focus_cost."SubAccountId" is 'As BillingAccountId';
comment on column bi.focus_cost."SubAccountName" is 'As BillingAccountName';
comment on column bi.focus_cost."ResourceId" is 'The API key that was used, where billing is read by accessor; NULL otherwise';
comment on column bi.focus_cost."ResourceName" is 'The API key''s comment; NULL where it is not known';
comment on column bi.focus_cost."ResourceType" is 'API key, or NULL without ResourceId';
comment on column bi.focus_cost."Tags" is 'The tags of the requests as a JSON object, each true, where billing is read by tags; NULL otherwise, and where there are none';
comment on column bi.focus_cost."x_CostSource" is 'billed: the service''s billing; estimated: usage by the configured prices, on days of which no billing was read, or a charge has no amount';
comment on column bi.focus_cost."x_UsageDate" is 'The day, a calendar day in UTC; the column to narrow a query by';
comment on column bi.focus_cost."x_Model" is 'The model, where x_CostSource is estimated';
comment on column bi.focus_cost."x_Metric" is 'The metric that is priced, by the name of its column in bi.usage_total; NULL where x_CostSource is billed';
comment on column bi.focus_cost."x_Grouping" is 'Which series the row is from: of billing the grouping with the most dimensions, among those that are still read without an error if there is one; or that of the usage';
comment on column bi.focus_cost."x_Finality" is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
