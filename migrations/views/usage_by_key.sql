create or replace view bi.usage_by_key as
select u.project_id, u.project, u.usage_date, u.accessor,
  {{metric: u.$m}}, u.extra_metrics,
  u.finality, u.revision, u.first_seen_at, u.last_changed_at,
  k.rotation, coalesce(k.rotation, u.accessor) as lineage,
  coalesce(nullif(l.comment, ''), k.comment) as key_comment, to_json(l.tags)::text as key_tags
from bi.usage_by_accessor u
left join usage_export.api_key k on k.project_id = u.project_id and k.api_key_id = u.accessor
left join usage_export.listed_key l on l.project_id = u.project_id and l.api_key_id = u.accessor;

comment on view bi.usage_by_key is 'All usage by API key, one row per project, day and accessor. Add up by lineage to see all keys of a rotation as one.';
