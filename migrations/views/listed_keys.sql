create or replace view bi.listed_keys as
select project_id, api_key_id, comment, to_json(tags)::text as key_tags, scopes, created_at, first_seen_at, last_seen_at, unlisted_since
from usage_export.listed_key;

comment on view bi.listed_keys is 'The API keys of the projects as the service lists them, one row a project and key, also those that are gone. Never a secret.';
comment on column bi.listed_keys.project_id is 'The service''s identifier of the project';
comment on column bi.listed_keys.api_key_id is 'The service''s identifier of the key';
comment on column bi.listed_keys.comment is 'The key''s comment at the service; empty where it has none';
comment on column bi.listed_keys.key_tags is 'The key''s tags at the service, a sorted JSON array; NULL where the service sent none';
comment on column bi.listed_keys.scopes is 'The scopes of the key';
comment on column bi.listed_keys.created_at is 'When the service says it made the key; NULL where it does not say';
comment on column bi.listed_keys.first_seen_at is 'When it was first seen in the list';
comment on column bi.listed_keys.last_seen_at is 'When it was last seen in the list';
comment on column bi.listed_keys.unlisted_since is 'Since when the service lists it no more, though it lists others: it was deleted, or is not shown to the key that asks; NULL while it is listed';
