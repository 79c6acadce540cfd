// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table usage_export.rotation (
      name            text        primary key,
      -- Who rotates now, and until when unless they say so again. A writer without the newest fence writes nothing.
      lease_owner     text,
      lease_until     timestamptz,
      fence           bigint      not null default 0,
      -- Since all was well; at the limit nothing is created any more.
      failed_attempts integer     not null default 0,
      last_error      text,
      -- The key that a person asked to have back.
      rollback_to     text
    )
  `.execute(db);

  await sql`
    create table usage_export.api_key (
      -- Recorded before the create and written into the key's comment.
      intent_id           text        primary key,
      rotation            text        not null references usage_export.rotation,
      project_id          text        not null,
      project             text        not null,
      api_key_id          text,
      state               text        not null check (state in ('pending', 'active', 'draining', 'retired', 'orphan')),
      -- How far a pending key is.
      step                text        check (step in ('intent', 'stored', 'verified')),
      comment             text        not null,
      scopes_asked        text[]      not null,
      scopes_granted      text[],
      -- A JWE; null before the key is there and after it is gone.
      sealed              text,
      master_key          text,
      requested_at        timestamptz not null default now(),
      created_at          timestamptz,
      expires_at          timestamptz,
      verified_at         timestamptz,
      active_since        timestamptz,
      -- A person had it put back: from then on it counts as new.
      put_back_at         timestamptz,
      draining_since      timestamptz,
      due_for_removal_at  timestamptz,
      retired_at          timestamptz,
      note                text,
      check ((state = 'pending') = (step is not null)),
      check (state not in ('active', 'draining') or (api_key_id is not null and sealed is not null))
    )
  `.execute(db);
  await sql`create unique index api_key_id on usage_export.api_key (project_id, api_key_id)`.execute(db);
  // However many processes rotate: one key on its way, and one in use.
  await sql`create unique index api_key_pending on usage_export.api_key (rotation) where state = 'pending'`.execute(db);
  await sql`create unique index api_key_active on usage_export.api_key (rotation) where state = 'active'`.execute(db);

  await sql`
    create table usage_export.key_delivery (
      rotation     text        not null references usage_export.rotation,
      sink         text        not null,
      -- A sink holds one key: the last that was delivered.
      intent_id    text        not null references usage_export.api_key,
      delivered_at timestamptz not null default now(),
      primary key (rotation, sink)
    )
  `.execute(db);

  await sql`
    create table usage_export.key_event (
      event_id   bigint      generated always as identity primary key,
      -- A change whose answer was lost on its way is tried again, and finds that it was made.
      change_id  uuid        unique,
      at         timestamptz not null default clock_timestamp(),
      rotation   text        not null,
      intent_id  text,
      event      text        not null,
      actor      text        not null,
      reason     text        not null
    )
  `.execute(db);
  await sql`create index key_event_rotation on usage_export.key_event (rotation, at)`.execute(db);

  await sql`
    create view bi.api_keys as
    select k.project_id, k.project, k.rotation, k.api_key_id, k.intent_id, k.comment, k.state, k.scopes_granted as scopes,
      k.requested_at, k.created_at, k.active_since, k.draining_since, k.due_for_removal_at, k.retired_at, k.expires_at,
      extract(epoch from now() - k.requested_at)::numeric / 86400 as age_days,
      u.last_seen_in_use, k.note
    from usage_export.api_key k
    left join lateral (
      select max(v.usage_date) as last_seen_in_use
      from bi.usage_by_accessor v
      where v.project_id = k.project_id and v.accessor = k.api_key_id and v.requests > 0
    ) u on true
  `.execute(db);
  await sql`comment on view bi.api_keys is 'The ledger of API keys, one row a key that was made or may have been made. Never a secret.'`.execute(
    db,
  );
  for (const [column, text] of Object.entries({
    project_id: "The service's identifier of the project",
    project: "The project's name in the configuration",
    rotation: "The rotation that made the key",
    api_key_id: "The service's identifier of the key; NULL while it is not known",
    intent_id: "The rotation's own identifier, which stands in the key's comment at the service",
    comment: "The comment the key was made with",
    state:
      "pending: on its way; active: in use; draining: replaced, still valid; retired: gone; orphan: made or perhaps made, its secret lost",
    scopes: "The scopes the service granted",
    requested_at: "When the key was asked for",
    created_at: "When the service says it made the key",
    active_since: "When it was taken into use",
    draining_since: "When another took its place",
    due_for_removal_at: "Since when it can be removed at the service",
    retired_at: "When it was found or made to be gone",
    expires_at: "When it ends by itself; NULL where it does not",
    age_days: "Its age in days, since it was asked for",
    last_seen_in_use:
      "The newest stored day with usage by this key, a calendar day in UTC; NULL where none is known: usage names keys by accessor, which need not be the key's identifier",
    note: "Why it is in this state, where that needs words",
  })) {
    await sql`comment on column ${sql.id("bi", "api_keys", column)} is ${sql.lit(text)}`.execute(db);
  }
  await sql`
    do $$
    begin
      if exists (select from pg_catalog.pg_roles where rolname = 'usage_reader') then
        grant select on bi.api_keys to usage_reader;
      end if;
    end
    $$
  `.execute(db);
}
