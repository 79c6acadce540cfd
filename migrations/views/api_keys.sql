create or replace view bi.api_keys as
select k.project_id, k.project, k.rotation, k.api_key_id, k.intent_id, k.comment, k.state, k.scopes_granted as scopes,
  k.requested_at, k.created_at, k.active_since, k.draining_since, k.due_for_removal_at, k.retired_at, k.expires_at,
  extract(epoch from now() - k.requested_at)::numeric / 86400 as age_days,
  u.last_seen_in_use, k.note, u.accessor, u.first_seen_in_use,
  (row_number() over (partition by k.rotation order by k.requested_at, k.intent_id))::integer as lineage_order,
  to_json(l.tags)::text as key_tags, l.unlisted_since
from usage_export.api_key k
left join usage_export.listed_key l on l.project_id = k.project_id and l.api_key_id = k.api_key_id
left join (
  select project_id, accessor, min(usage_date) as first_seen_in_use, max(usage_date) as last_seen_in_use
  from bi.usage_by_accessor where requests > 0 group by project_id, accessor
) u on u.project_id = k.project_id and u.accessor = k.api_key_id;

comment on view bi.api_keys is 'The ledger of API keys, one row per key that was made or may have been. Never a secret.';
comment on column bi.api_keys.intent_id is 'The program''s own identifier of the key, also in its comment';
comment on column bi.api_keys.comment is 'The comment the key was made with';
comment on column bi.api_keys.state is 'pending, active, draining (replaced, still valid), retired (gone) or orphan (its secret is lost)';
comment on column bi.api_keys.requested_at is 'When the key was asked for';
comment on column bi.api_keys.active_since is 'When it was taken into use';
comment on column bi.api_keys.draining_since is 'When another took its place';
comment on column bi.api_keys.due_for_removal_at is 'Since when it can be removed at the service';
comment on column bi.api_keys.retired_at is 'When it was deleted, or found gone';
comment on column bi.api_keys.expires_at is 'When it expires; NULL for never';
comment on column bi.api_keys.age_days is 'Days since it was asked for';
comment on column bi.api_keys.last_seen_in_use is 'The newest and the oldest day with usage by this key; NULL if none is known';
comment on column bi.api_keys.note is 'Why it is in this state';
comment on column bi.api_keys.accessor is 'The key as usage names it; NULL without usage';
comment on column bi.api_keys.first_seen_in_use is 'The newest and the oldest day with usage by this key; NULL if none is known';
comment on column bi.api_keys.lineage_order is 'Its number among the keys of its rotation, 1 for the oldest';
