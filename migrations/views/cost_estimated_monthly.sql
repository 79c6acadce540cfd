create or replace view bi.cost_estimated_monthly as
with cost as (
  select e.*, p.currency, p.digits, p.metric, p.model, p.filter_key,
    -- After a change within the month the last price decides: its minimum, its currency, and whether each project has to reach it.
    first_value(p.minimum) over last_price as minimum, first_value(p.currency) over last_price as minimum_currency,
    first_value(p.volume) over last_price as volume
  from (
    select date_trunc('month', usage_date::timestamp)::date as month, project_id, max(project) as project, price_id, sum(amount) as amount,
      min(array_position(array['open', 'settling', 'final'], finality)) as stage
    from bi.cost_estimated
    -- So that the planner leaves out what has no price.
    where price_id is not null
    group by 1, project_id, price_id
  ) e
  join usage_export.price p using (price_id)
  window last_price as (partition by e.month, p.metric, p.model, p.filter_key order by p.valid_from desc)
)
select month, project_id, max(project) as project, currency, sum(amount) as usage_amount, sum(minimum_amount) as minimum_amount,
  round(sum(amount) + sum(minimum_amount), max(digits)) as amount, (array['open', 'settling', 'final'])[min(stage)] as finality
from (
  select month, project_id, project, currency, digits, stage, amount, 0 as minimum_amount from cost
  union all
  select month, project_id, project, currency, digits, stage, 0, minimum - amount
  from (
    select month, currency, case volume when 'project' then project_id end as project_id,
      max(case volume when 'project' then project end) as project, max(digits) as digits, min(stage) as stage,
      sum(amount) as amount, max(minimum) as minimum
    from cost
    where currency = minimum_currency
    group by month, currency, 3, metric, model, filter_key
  ) priced
  where minimum > amount
) part
group by month, project_id, currency;

comment on view bi.cost_estimated_monthly is 'The estimated cost of a month, one row a project and currency, with what is lacking to the minimum of a price. Rounded only here: the sum of its amounts may differ by a few cents from the rounded sum.';
comment on column bi.cost_estimated_monthly.month is 'The first day of the month, in UTC';
comment on column bi.cost_estimated_monthly.project_id is 'The service''s identifier of the project; NULL for the minimum of a price that all projects share';
comment on column bi.cost_estimated_monthly.project is 'The project''s name in the configuration; NULL for the minimum of a price that all projects share';
comment on column bi.cost_estimated_monthly.currency is 'The currency of the amounts, an ISO 4217 code';
comment on column bi.cost_estimated_monthly.usage_amount is 'The sum of amount in bi.cost_estimated, exact and not rounded';
comment on column bi.cost_estimated_monthly.minimum_amount is 'What the usage lacks so far to the minimum of its prices, exact and not rounded; 0 where nothing';
comment on column bi.cost_estimated_monthly.amount is 'usage_amount + minimum_amount, rounded half up to the decimals of the currency';
comment on column bi.cost_estimated_monthly.finality is 'open: a day of it was not over when it was read; settling: a day of it is still read again; final: no stored day of it is read again';
