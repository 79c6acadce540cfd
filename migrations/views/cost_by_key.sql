create or replace view bi.cost_by_key as
select c.project_id, c.project, c.usage_date, c.accessor, k.rotation, c.lineage,
  coalesce(nullif(l.comment, ''), k.comment) as key_comment, to_json(l.tags)::text as key_tags,
  c.dollars as amount, 'USD' as currency, c.extra_metrics, c.finality, c.is_final, c.fetched_at, c.revision, c.first_seen_at, c.last_changed_at
from usage_export.visible_cost c
left join usage_export.api_key k on k.project_id = c.project_id and k.api_key_id = c.accessor
left join usage_export.listed_key l on l.project_id = c.project_id and l.api_key_id = c.accessor
where c."grouping" = 'accessor' and c.filter_key = '{}';

comment on view bi.cost_by_key is 'What the service charges by API key, one row per project, day and accessor. Add up by lineage to see all keys of a rotation as one.';
