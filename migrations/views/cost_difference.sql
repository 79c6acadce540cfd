-- A line item reads "method::model". Usage of a model belongs to the longest such model that its name equals or begins with, followed by
-- a hyphen: a service may charge for a generation of models, and name each of them in usage.
create or replace view bi.cost_difference as
with line_item as materialized (
  select distinct line_item, case when line_item ~ '^[^:]+::[^:]+$' then split_part(line_item, '::', 2) end as model
  from usage_export.group_value
  cross join lateral (
    select case when "grouping" = 'line_item' then display when "grouping" like '%,%' then display::json ->> 'line_item' end as line_item
  ) named
  where line_item is not null
), used_model as materialized (
  select g.display as used, coalesce(max(billed.model), g.display) as model
  from usage_export.group_value g
  left join lateral (
    select model from line_item
    where g.display = model or starts_with(g.display, model || '-')
    order by length(model) desc limit 1
  ) billed on true
  -- A set of models is charged for as something else, or in parts that are not known.
  where g."grouping" = 'model' and not starts_with(g.display, '[')
  group by g.display
)
select c.project_id, c.project, c.usage_date, c.model, c.currency, c.estimated_amount, c.billed_amount,
  case when read.billing and read.usage and c.currency = 'USD' and not c.is_unknown then
    coalesce(c.billed_amount, 0) - coalesce(c.estimated_amount, 0)
  end as difference,
  case
    when not coalesce(read.billing, false) then 'billing_not_read'
    when not read.usage then 'usage_not_read'
    when c.unmapped is not null then 'unmapped'
    when c.currency <> 'USD' then 'other_currency'
    when c.is_unknown then 'amount_unknown'
    when not c.is_billed then 'estimated_only'
    when not c.is_used then 'billed_only'
    else 'compared'
  end as status,
  c.has_unpriced,
  -- Sorted here, as distinct and sorted aggregates would have all usage sorted first.
  (select to_json(array_agg(distinct one collate "C"))::text from unnest(c.line_items) as one) as line_items,
  (select to_json(array_agg(distinct one collate "C"))::text from unnest(c.used_models) as one) as used_models,
  c.is_final and coalesce(read.billing and read.usage, false) as is_final
from (
  select project_id, max(project) as project, usage_date, model, unmapped, currency,
    sum(estimated) as estimated_amount, sum(billed) as billed_amount, bool_or(is_billed) as is_billed, bool_or(not is_billed) as is_used,
    -- No amount is not 0: a difference from the other amounts would be too low.
    bool_or(is_billed and billed is null) as is_unknown,
    bool_or(is_unpriced) as has_unpriced, bool_and(is_final) as is_final,
    array_agg(line_item) filter (where line_item is not null) as line_items, array_agg(used) filter (where used is not null) as used_models
  from (
    -- Usage without a price is shown beside what is charged for it, which is always in dollars.
    select e.project_id, e.project, e.usage_date, u.model, case when u.model is null then 'usage of ' || coalesce(e.model, 'no model') end as unmapped,
      coalesce(e.currency, 'USD') as currency, e.amount as estimated, null::numeric as billed, false as is_billed,
      e.status = 'unpriced' as is_unpriced, null as line_item, e.model as used, e.finality = 'final' as is_final
    from bi.cost_estimated e
    left join used_model u on u.used = e.model
    where e.status <> 'other_metric'
    union all
    select c.project_id, c.project, c.usage_date, l.model, case when l.model is null then 'line item ' || coalesce(c.line_item, 'that is not named') end,
      'USD', null, c.dollars, true, false, c.line_item, null, c.is_final
    from (
      -- The series to take the day from: every grouping with line items has the same cost again, unless it is read no more.
      select distinct on (s.project_id, sl.usage_date) s.project_id, sl.usage_date, s.series_id
      from usage_export.series s
      join usage_export.slice sl using (series_id)
      where s.source = 'billing' and s.filter_key = '{}' and s.superseded_at is null and s."grouping" like '%line_item%' and sl.fetch_no > 0
      order by s.project_id, sl.usage_date, sl.status = 'complete' desc, s.retired_at is null desc, length(s."grouping"), s."grouping"
    ) taken
    join usage_export.visible_cost c on c.series_id = taken.series_id and c.usage_date = taken.usage_date
    left join line_item l on l.line_item = c.line_item
  ) part
  group by project_id, usage_date, model, unmapped, currency
) c
left join (
  select s.project_id, sl.usage_date, bool_or(s.source = 'billing') as billing, bool_or(s.source = 'usage') as usage
  from usage_export.series s
  join usage_export.slice sl using (series_id)
  where s.filter_key = '{}' and s.superseded_at is null and sl.fetch_no > 0
    and case s.source when 'billing' then s."grouping" like '%line_item%' else s."grouping" = 'model' end
  group by s.project_id, sl.usage_date
) read using (project_id, usage_date);

comment on view bi.cost_difference is 'What the price book estimates against what the service charges, one row a project, day, model and currency. A line item method::model is charged for the usage of the model whose name it has, or whose name begins with it and a hyphen; of several the longest. What can not be matched has a row of its own: no amount of bi.cost_estimated or of the line items is left out.';
\ir ../columns/project.sql
comment on column bi.cost_difference.usage_date is 'The day of usage and cost, a calendar day in UTC';
comment on column bi.cost_difference.model is 'The model as line items name it, or as usage does where no line item has it; NULL where the status is unmapped';
comment on column bi.cost_difference.currency is 'The currency of the amounts, an ISO 4217 code; what is charged is in USD';
comment on column bi.cost_difference.estimated_amount is 'The sum of amount in bi.cost_estimated, exact and not rounded; NULL where there is none';
comment on column bi.cost_difference.billed_amount is 'The sum of what the service charges for the line items, exact and not rounded; NULL where there is none. A line item without an amount is not in it';
comment on column bi.cost_difference.difference is 'billed_amount - estimated_amount, where NULL counts as 0; NULL on a day of which only one of both was read, in a currency other than USD, and where a line item has no amount';
comment on column bi.cost_difference.status is 'compared; estimated_only: nothing is charged for the model; billed_only: no usage of the model has an estimate in this currency; unmapped: a line item that names no model, or usage of no model or of several at once; other_currency: an estimate in another currency than what is charged; amount_unknown: the service sent no amount for a line item; billing_not_read: no billing by line_item was read for the day; usage_not_read: no usage by model was';
comment on column bi.cost_difference.has_unpriced is 'Whether usage of it has no price, so that the estimate is too low';
comment on column bi.cost_difference.line_items is 'The line items in billed_amount, a sorted JSON array; NULL where there is none';
comment on column bi.cost_difference.used_models is 'The models in estimated_amount by their names in usage, a sorted JSON array; NULL where there is none';
comment on column bi.cost_difference.is_final is 'Whether both were read and neither changes any more';
