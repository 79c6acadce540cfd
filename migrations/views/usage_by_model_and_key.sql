create or replace view bi.usage_by_model_and_key as
select u.project_id, u.project, u.usage_date, u.group_value as model, u.value as accessor,
  u.hours, u.total_hours, u.agent_hours, u.tokens_in, u.tokens_out, u.tts_characters, u.requests, u.extra_metrics,
  u.finality, u.revision, u.first_seen_at, u.last_changed_at,
  k.rotation, coalesce(k.rotation, u.value) as lineage, coalesce(nullif(l.comment, ''), k.comment) as key_comment
from bi.usage_by_two_dimensions u
left join usage_export.api_key k on k.project_id = u.project_id and k.api_key_id = u.value
left join usage_export.listed_key l on l.project_id = u.project_id and l.api_key_id = u.value
where u.dimension = 'accessor' and u."grouping" = 'model';

comment on view bi.usage_by_model_and_key is 'Usage by model and API key, one row a project, day, model and key, of the keys that a filter such as { "each": "accessor" } reads by model. Keys that it leaves out are in bi.usage_by_key only.';
comment on column bi.usage_by_model_and_key.project_id is 'The service''s identifier of the project';
comment on column bi.usage_by_model_and_key.project is 'The project''s name in the configuration';
comment on column bi.usage_by_model_and_key.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column bi.usage_by_model_and_key.model is 'The model used; a sorted JSON array where there were several; NULL for no value';
comment on column bi.usage_by_model_and_key.accessor is 'The public identifier of the API key that was used';
comment on column bi.usage_by_model_and_key.hours is 'Hours of audio, in hours; NULL where the service sent none';
comment on column bi.usage_by_model_and_key.total_hours is 'Total hours, in hours, as the service counts them; NULL where it sent none';
comment on column bi.usage_by_model_and_key.agent_hours is 'Hours of agent connections, in hours; NULL where the service sent none';
comment on column bi.usage_by_model_and_key.tokens_in is 'Tokens received, a count; NULL where the service sent none';
comment on column bi.usage_by_model_and_key.tokens_out is 'Tokens produced, a count; NULL where the service sent none';
comment on column bi.usage_by_model_and_key.tts_characters is 'Characters turned into speech, a count; NULL where the service sent none';
comment on column bi.usage_by_model_and_key.requests is 'Requests, a count; NULL where the service sent none';
comment on column bi.usage_by_model_and_key.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column bi.usage_by_model_and_key.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.usage_by_model_and_key.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.usage_by_model_and_key.first_seen_at is 'When this group was first stored for this day';
comment on column bi.usage_by_model_and_key.last_changed_at is 'When a number of this row last changed';
comment on column bi.usage_by_model_and_key.rotation is 'The rotation that made the key; NULL where none did';
comment on column bi.usage_by_model_and_key.lineage is 'The line to chart: the rotation, whichever of its keys was used; the accessor itself where no rotation made it';
comment on column bi.usage_by_model_and_key.key_comment is 'The key''s comment, kept when the key is deleted; NULL where it is not known';
