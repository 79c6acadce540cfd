-- The series whose readings decide which days of a budget are known, and where its amounts are from. A cost is the billed one in projects
-- whose billing is read as the budget needs it. In others it is the estimate, which is made of all usage by model, and of each series with
-- conditions that a price is for.
create or replace view usage_export.budget_series as
select b.name, b.valid_from, s.series_id, s.project_id, s.window_days, s.source
from usage_export.budget b
cross join lateral (
  select case b.scope when 'all' then 'none' when 'key' then 'accessor' when 'tag' then 'tags' else 'model' end as "grouping"
) needed
join usage_export.series s on s.project_id = any(b.project_ids) and s.superseded_at is null
cross join lateral (
  -- The service bills in dollars.
  select b.metric = 'cost' and b.currency = 'USD' and exists (
    select from usage_export.series bill
    where bill.source = 'billing' and bill.project_id = s.project_id and bill.filter_key = '{}' and bill."grouping" = needed."grouping"
      and bill.superseded_at is null and bill.retired_at is null
  ) as is_billed
) of_project
where case
  when of_project.is_billed then s.source = 'billing' and s.filter_key = '{}' and s."grouping" = needed."grouping"
  when b.metric = 'cost' then s.source = 'usage' and s."grouping" = 'model' and (
    s.filter_key = '{}' or exists (select from usage_export.price where replaced_at is null and price.filter_key = s.filter_key)
  )
  else s.source = 'usage' and s.filter_key = '{}' and s."grouping" = needed."grouping"
end;
