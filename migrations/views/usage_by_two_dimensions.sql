-- Series whose filter is one value of one dimension: usage by that dimension and by the grouping.
create or replace view bi.usage_by_two_dimensions as
select r.project_id, r.project, r.usage_date, f.dimension, f.value, r."grouping", r.group_value,
  {{metric: r.$m}}, r.extra_metrics,
  r.finality, r.revision, r.first_seen_at, r.last_changed_at
from usage_export.visible_usage r
join (
  -- Each filter is parsed once, as it has many rows.
  select filter_key, conditions ->> 'features' as features, one.key as dimension, one.value,
    count(*) over (partition by filter_key) as dimensions
  from (select filter_key, filter_key::json as conditions from usage_export.series where filter_key <> '{}' group by filter_key) s
  cross join lateral json_each_text(s.conditions -> 'dimensions') one
) f on f.filter_key = r.filter_key and f.features is null and f.dimensions = 1
where r."grouping" not in ('none', f.dimension);

comment on view bi.usage_by_two_dimensions is 'Usage by two dimensions, from filters by one value such as those of "each": one row per project, day, value of the first and group of the second. Never add up over tags, nor over several dimensions.';
comment on column bi.usage_by_two_dimensions.dimension is 'The dimension that the filter narrows by';
comment on column bi.usage_by_two_dimensions.value is 'The value of that dimension';
