create or replace view bi.usage_by_key as
select u.project_id, u.project, u.usage_date, u.accessor,
  {{metric: u.$m}}, u.extra_metrics,
  u.finality, u.revision, u.first_seen_at, u.last_changed_at,
  k.rotation, coalesce(k.rotation, u.accessor) as lineage,
  coalesce(nullif(l.comment, ''), k.comment) as key_comment, to_json(l.tags)::text as key_tags
from bi.usage_by_accessor u
left join usage_export.api_key k on k.project_id = u.project_id and k.api_key_id = u.accessor
left join usage_export.listed_key l on l.project_id = u.project_id and l.api_key_id = u.accessor;

comment on view bi.usage_by_key is 'All usage by API key, one row a project, day and accessor: bi.usage_by_accessor with what is known of the key. By lineage it adds up to one line for all keys of a rotation.';
\ir ../columns/usage.sql
comment on column bi.usage_by_key.accessor is 'The public identifier of the API key that was used; NULL for no value';
comment on column bi.usage_by_key.rotation is 'The rotation that made the key; NULL where none did';
comment on column bi.usage_by_key.lineage is 'The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it; NULL for no value';
comment on column bi.usage_by_key.key_comment is 'The key''s comment, kept when the key is deleted; NULL where it is not known';
comment on column bi.usage_by_key.key_tags is 'The key''s tags at the service, a sorted JSON array, kept when the key is deleted; NULL where they are not known';
