-- The series whose readings decide which days of a budget are known. A cost is made of all usage by model, and of each series with
-- conditions that a price is for.
create or replace view usage_export.budget_series as
select b.name, b.valid_from, s.series_id, s.project_id, s.window_days
from usage_export.budget b
join usage_export.series s on s.source = 'usage' and s.project_id = any(b.project_ids) and s.superseded_at is null and case
  when b.metric = 'cost' then s."grouping" = 'model' and (
    s.filter_key = '{}' or exists (select from usage_export.price where replaced_at is null and price.filter_key = s.filter_key)
  )
  else s.filter_key = '{}' and s."grouping" = case b.scope
    when 'all' then 'none' when 'key' then 'accessor' when 'tag' then 'tags' else 'model' end
end;
