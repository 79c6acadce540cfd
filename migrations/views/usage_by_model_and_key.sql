create or replace view bi.usage_by_model_and_key as
select u.project_id, u.project, u.usage_date, u.group_value as model, u.value as accessor,
  {{metric: u.$m}}, u.extra_metrics,
  u.finality, u.revision, u.first_seen_at, u.last_changed_at,
  k.rotation, coalesce(k.rotation, u.value) as lineage, coalesce(nullif(l.comment, ''), k.comment) as key_comment
from bi.usage_by_two_dimensions u
left join usage_export.api_key k on k.project_id = u.project_id and k.api_key_id = u.value
left join usage_export.listed_key l on l.project_id = u.project_id and l.api_key_id = u.value
where u.dimension = 'accessor' and u."grouping" = 'model';

comment on view bi.usage_by_model_and_key is 'Usage by model and API key, one row a project, day, model and key, of the keys that a filter such as { "each": "accessor" } reads by model. Keys that it leaves out are in bi.usage_by_key only.';
\ir ../columns/usage.sql
comment on column bi.usage_by_model_and_key.model is 'The model used; a sorted JSON array where there were several; NULL for no value';
comment on column bi.usage_by_model_and_key.accessor is 'The public identifier of the API key that was used';
comment on column bi.usage_by_model_and_key.rotation is 'The rotation that made the key; NULL where none did';
comment on column bi.usage_by_model_and_key.lineage is 'The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it';
comment on column bi.usage_by_model_and_key.key_comment is 'The key''s comment, kept when the key is deleted; NULL where it is not known';
