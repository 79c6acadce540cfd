create or replace view bi.listed_keys as
select project_id, api_key_id, comment, to_json(tags)::text as key_tags, scopes, created_at, first_seen_at, last_seen_at, unlisted_since
from usage_export.listed_key;

comment on view bi.listed_keys is 'The API keys of the projects as the service lists them, one row a project and key, also those that are gone. Never a secret.';
comment on column bi.listed_keys.comment is 'The key''s comment at the service; empty where it has none';
comment on column bi.listed_keys.first_seen_at is 'When the list had it first, and last';
comment on column bi.listed_keys.last_seen_at is 'When the list had it first, and last';
