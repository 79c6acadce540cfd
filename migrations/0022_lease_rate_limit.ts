// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // Logged, unlike the table before it: a server that restarts must not forget which slots are in use.
  await sql`
    create table usage_export.rate_limit (
      service       text        primary key,
      -- By the id of each process: its slots, how many it wants, and when the lease ends. One value for all of them: an update
      -- that is made only if the value is still the one that was read decides on all slots at once.
      leases        jsonb       not null default '{}',
      -- When a slot that was released may start its next call, by the rate.
      next_start_at timestamptz not null default '-infinity',
      -- The service asked for no call before this.
      paused_until  timestamptz not null default '-infinity',
      -- How long that pause is. If more is left of it, the clock was set back.
      pause         interval    not null default '0'
    )
  `.execute(db);
  await sql`
    insert into usage_export.rate_limit (service, paused_until, pause)
    select service, held_until, held_for from usage_export.service_pace
  `.execute(db);
  // A worker of an older version that still runs can make no more calls: two rate limiters would be twice the rate.
  await sql`drop function usage_export.take_turn(text, uuid, double precision, integer, double precision)`.execute(db);
  await sql`
    drop function usage_export.take_turns(
      text, uuid[], uuid[], integer, double precision, integer, double precision, double precision
    )
  `.execute(db);
  await sql`drop table usage_export.service_call, usage_export.service_pace`.execute(db);
}
