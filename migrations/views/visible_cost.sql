-- The amounts of the newest answers, for every series of billing that is shown. Only the dimensions of its grouping have values, the same ones as
-- in billing by that dimension alone.
create or replace view usage_export.visible_cost as
select s.project_id, s.project, r.usage_date, s."grouping", s.filter, s.filter_key,
  dimension.accessor, dimension.deployment, dimension.line_item, dimension.tags,
  r.dollars, r.extra_metrics, f.finality, r.revision, r.first_seen_at, r.last_changed_at,
  s.series_id, coalesce(k.rotation, dimension.accessor) as lineage, f.finality = 'final' and sl.status = 'complete' as is_final, sl.fetched_at
from usage_export.slice_row r
join usage_export.series s using (series_id)
join usage_export.slice sl using (series_id, usage_date)
join usage_export.group_value g using (group_id)
cross join lateral (select usage_export.finality(r.usage_date, s.window_days, sl.closed_at, now()) as finality) f
-- As json and not as jsonb, which would write the array of tags with other spaces.
cross join lateral (select case when s."grouping" like '%,%' then g.display::json end as value) several
cross join lateral (
  select case s."grouping" when 'accessor' then g.display else several.value ->> 'accessor' end as accessor,
    case s."grouping" when 'deployment' then g.display else several.value ->> 'deployment' end as deployment,
    case s."grouping" when 'line_item' then g.display else several.value ->> 'line_item' end as line_item,
    case s."grouping" when 'tags' then g.display else several.value ->> 'tags' end as tags
) dimension
left join usage_export.api_key k on k.project_id = s.project_id and k.api_key_id = dimension.accessor
where not r.gone and s.superseded_at is null and s.source = 'billing';
