-- This view reads the rows of all groupings in one pass, where the views of one grouping would take a pass each.
create or replace view bi.usage_by_group as
select u.project_id, u.project, u.usage_date, u."grouping", u.group_value, coalesce(k.rotation, u.group_value) as lineage,
  {{metric: u.$m}}, u.extra_metrics,
  u.finality, u.revision, u.first_seen_at, u.last_changed_at
from usage_export.visible_usage u
left join usage_export.api_key k
  on k.project_id = u.project_id and k.api_key_id = case when u."grouping" = 'accessor' then u.group_value end
where u.filter_key = '{}' and u."grouping" <> 'none';

comment on view bi.usage_by_group is 'All usage by each dimension, one row per project, day, grouping and value. Choose one grouping.';
