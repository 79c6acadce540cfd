-- A day of a project has either what the service billed, from one grouping, or the estimate, so that nothing is counted twice.
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
  join usage_export.billed_grouping d using (project_id, usage_date, "grouping")
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
    select from usage_export.billed_grouping d where d.project_id = e.project_id and d.usage_date = e.usage_date
  )
) c
left join usage_export.api_key k on k.project_id = c.project_id and k.api_key_id = c.accessor
left join usage_export.listed_key l on l.project_id = c.project_id and l.api_key_id = c.accessor;

comment on view bi.focus_cost is 'What usage costs in the mandatory columns of FOCUS 1.1, one row per charge. A project''s day has what the service billed or, if that is not known, the estimate; never both.';
comment on column bi.focus_cost."BilledCost" is 'The billed amount or the estimate, exact; below 0 for a credit';
comment on column bi.focus_cost."EffectiveCost" is 'The billed amount or the estimate, exact; below 0 for a credit';
comment on column bi.focus_cost."ListCost" is 'The billed amount or the estimate, exact; below 0 for a credit';
comment on column bi.focus_cost."ContractedCost" is 'The billed amount or the estimate, exact; below 0 for a credit';
comment on column bi.focus_cost."BillingCurrency" is 'An ISO 4217 code';
comment on column bi.focus_cost."BillingAccountId" is 'The service''s identifier of the project';
comment on column bi.focus_cost."BillingAccountName" is 'The project''s name in the configuration';
comment on column bi.focus_cost."BillingPeriodStart" is 'The beginning of the month in UTC, and of the next';
comment on column bi.focus_cost."BillingPeriodEnd" is 'The beginning of the month in UTC, and of the next';
comment on column bi.focus_cost."ChargePeriodStart" is 'The beginning of the day in UTC, and of the next';
comment on column bi.focus_cost."ChargePeriodEnd" is 'The beginning of the day in UTC, and of the next';
comment on column bi.focus_cost."ChargeCategory" is 'Usage, or Credit below 0';
comment on column bi.focus_cost."ChargeClass" is 'Always NULL';
comment on column bi.focus_cost."ChargeDescription" is 'The billed line item, or model and metric';
comment on column bi.focus_cost."ChargeFrequency" is 'Always Usage-Based';
comment on column bi.focus_cost."PricingCategory" is 'Always Standard';
comment on column bi.focus_cost."PricingQuantity" is 'The estimate''s quantity';
comment on column bi.focus_cost."PricingUnit" is 'The estimate''s unit: Hours, Tokens, Characters or Requests';
comment on column bi.focus_cost."ContractedUnitPrice" is 'The estimate''s price of a unit';
comment on column bi.focus_cost."ConsumedQuantity" is 'The estimate''s quantity';
comment on column bi.focus_cost."ConsumedUnit" is 'The estimate''s unit: Hours, Tokens, Characters or Requests';
comment on column bi.focus_cost."SkuId" is 'The billed line item, or the price''s model, metric and conditions';
comment on column bi.focus_cost."SkuPriceId" is 'The price''s version and tier; SkuId for billed rows';
comment on column bi.focus_cost."ServiceCategory" is 'Always AI and Machine Learning';
comment on column bi.focus_cost."ServiceSubcategory" is 'Always Natural Language Processing';
comment on column bi.focus_cost."ServiceName" is 'Always Speech processing';
comment on column bi.focus_cost."ProviderName" is 'Always Deepgram';
comment on column bi.focus_cost."PublisherName" is 'Always Deepgram';
comment on column bi.focus_cost."InvoiceIssuerName" is 'Always Deepgram';
comment on column bi.focus_cost."SubAccountId" is 'The service''s identifier of the project';
comment on column bi.focus_cost."SubAccountName" is 'The project''s name in the configuration';
comment on column bi.focus_cost."ResourceId" is 'The API key, if billing is read by accessor';
comment on column bi.focus_cost."ResourceName" is 'The key''s comment';
comment on column bi.focus_cost."ResourceType" is 'API key, if there is a ResourceId';
comment on column bi.focus_cost."Tags" is 'The tags, a JSON object, each true, if billing is read by tags';
comment on column bi.focus_cost."x_CostSource" is 'billed or estimated';
comment on column bi.focus_cost."x_UsageDate" is 'The day in UTC: narrow queries by it';
comment on column bi.focus_cost."x_Model" is 'The estimate''s model and metric';
comment on column bi.focus_cost."x_Metric" is 'The estimate''s model and metric';
comment on column bi.focus_cost."x_Grouping" is 'The grouping that the row is from';
comment on column bi.focus_cost."x_Finality" is 'The finality';
