-- For each day and project whose billing was read, the grouping to take the cost from. Complete slices of series that are still read come first,
-- as other amounts may be old. Among these, the grouping with the most dimensions comes first, preferably by line item. A grouping that has a
-- row without an amount is left out, as it does not tell the cost of the day.
create or replace view usage_export.billed_grouping as
select distinct on (s.project_id, sl.usage_date) s.project_id, sl.usage_date, s."grouping"
from usage_export.slice sl
join usage_export.series s using (series_id)
where s.source = 'billing' and s.filter_key = '{}' and s.superseded_at is null and sl.fetch_no > 0
  and not exists (
    select from usage_export.slice_row r
    where r.series_id = sl.series_id and r.usage_date = sl.usage_date and not r.gone and r.dollars is null
  )
order by s.project_id, sl.usage_date, sl.status = 'complete' desc, s.retired_at is null desc,
  case s."grouping" when 'none' then 0 else cardinality(string_to_array(s."grouping", ',')) end desc,
  'line_item' = any(string_to_array(s."grouping", ',')) desc, s."grouping";
