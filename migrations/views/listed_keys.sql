create or replace view bi.listed_keys as
select project_id, api_key_id, comment, to_json(tags)::text as key_tags, scopes, created_at, first_seen_at, last_seen_at, unlisted_since
from usage_export.listed_key;

comment on view bi.listed_keys is 'The API keys that the service lists or listed, one row per project and key. Never a secret.';
comment on column bi.listed_keys.comment is 'The key''s comment at the service, or empty';
comment on column bi.listed_keys.first_seen_at is 'When it was first and last listed';
comment on column bi.listed_keys.last_seen_at is 'When it was first and last listed';
