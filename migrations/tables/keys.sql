-- The ledger of API keys, and the keys that the service lists.

create table usage_export.rotation (
  name            text    primary key,
  -- Its name in the configuration, if the rotation is for many projects, and the project's name. Both are those of the newest run.
  job_name        text,
  project         text,
  -- The end of the lease of the process that rotates now, unless it is renewed. A process without the newest fence writes nothing.
  lease_until     timestamptz,
  fence           bigint  not null default 0,
  -- Counted since the last success. At the limit no key is created any more.
  failed_attempts integer not null default 0,
  last_error      text,
  -- The key that a rollback is to make active again.
  rollback_to     text
);
comment on table usage_export.rotation is 'Rotations: who works on one, and how it goes';

create table usage_export.api_key (
  -- Recorded before the key is created, and written into its comment.
  intent_id          text        primary key,
  rotation           text        not null references usage_export.rotation,
  project_id         text        not null,
  project            text        not null,
  api_key_id         text,
  state              text        not null check (state in ('pending', 'active', 'draining', 'retired', 'orphan')),
  -- How far a pending key is.
  step               text        check (step in ('intent', 'stored', 'verified')),
  comment            text        not null,
  scopes_asked       text[]      not null,
  scopes_granted     text[],
  -- A JWE; null before the key is created and after it is retired.
  sealed             text,
  -- The identifier of the master key that sealed it.
  master_key         text,
  requested_at       timestamptz not null default now(),
  created_at         timestamptz,
  expires_at         timestamptz,
  active_since       timestamptz,
  -- When a rollback made it active again: its age counts from then on.
  rollback_at        timestamptz,
  draining_since     timestamptz,
  due_for_removal_at timestamptz,
  retired_at         timestamptz,
  note               text,
  check ((state = 'pending') = (step is not null)),
  check (state not in ('active', 'draining') or (api_key_id is not null and sealed is not null))
);
create unique index api_key_id on usage_export.api_key (project_id, api_key_id);
-- A rotation has at most one pending and one active key, however many processes rotate.
create unique index api_key_pending on usage_export.api_key (rotation) where state = 'pending';
create unique index api_key_active on usage_export.api_key (rotation) where state = 'active';
comment on table usage_export.api_key is 'The keys that rotations created, or may have created';

create table usage_export.key_delivery (
  rotation  text not null references usage_export.rotation,
  sink      text not null,
  -- A sink holds one key: the one that was delivered last.
  intent_id text not null references usage_export.api_key,
  primary key (rotation, sink)
);
comment on table usage_export.key_delivery is 'Which key each sink holds';

create table usage_export.key_event (
  event_id  bigint      generated always as identity primary key,
  -- A change whose acknowledgement was lost is tried again, and is found here.
  change_id uuid        unique,
  at        timestamptz not null default clock_timestamp(),
  rotation  text        not null,
  intent_id text,
  event     text        not null,
  actor     text        not null,
  reason    text        not null
);
create index key_event_rotation on usage_export.key_event (rotation, at);
comment on table usage_export.key_event is 'What happened to keys: by whom, and why';

create table usage_export.listed_key (
  project_id     text        not null,
  api_key_id     text        not null,
  comment        text        not null,
  -- Sorted; null if the service sent none.
  tags           text[],
  scopes         text[]      not null,
  created_at     timestamptz,
  first_seen_at  timestamptz not null default now(),
  last_seen_at   timestamptz not null default now(),
  -- Since when the list lacks it: it was deleted, or the reading key may not see it any more.
  unlisted_since timestamptz,
  primary key (project_id, api_key_id)
) with (fillfactor = 90);
comment on table usage_export.listed_key is 'The keys that the service lists, or has listed';
