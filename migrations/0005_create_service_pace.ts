// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // Unlogged: it is of this moment only, and writing it down would make every call of the service wait for the disk. After a
  // crash of the server both are empty, and all begins anew.
  await sql`
    create unlogged table usage_export.service_pace (
      service    text        primary key,
      -- When the next call may start, by the rate.
      next_at    timestamptz not null default '-infinity',
      -- The service asked not to be called before.
      held_until timestamptz not null default '-infinity'
    )
  `.execute(db);
  await sql`
    create unlogged table usage_export.service_call (
      call_id    uuid        primary key,
      service    text        not null,
      asked_at   timestamptz not null,
      -- When it has, or will have, its turn; null while it waits for a place.
      turn_at    timestamptz,
      -- Whoever made it says again and again that it lives; after this it is forgotten.
      until      timestamptz not null
    )
  `.execute(db);

  await sql`
    create function usage_export.take_turn(
      of_service text, of_call uuid, per_second double precision, at_once integer, lives_seconds double precision
    )
    returns table (outcome text, wait_ms double precision)
    language plpgsql set search_path = pg_catalog as $$
    declare
      pace   usage_export.service_pace;
      call   usage_export.service_call;
      at     timestamptz;
      before integer;
    begin
      select * into pace from usage_export.service_pace where service = of_service for update;
      if not found then
        insert into usage_export.service_pace (service) values (of_service) on conflict do nothing;
        select * into pace from usage_export.service_pace where service = of_service for update;
      end if;
      at := clock_timestamp();
      delete from usage_export.service_call where service = of_service and until < at;
      if pace.held_until > at then
        return query select 'held', extract(epoch from pace.held_until - at)::double precision * 1000;
        return;
      end if;

      insert into usage_export.service_call (call_id, service, asked_at, until)
      values (of_call, of_service, at, at + make_interval(secs => lives_seconds))
      on conflict (call_id) do update set until = excluded.until
      returning * into call;
      if call.turn_at is null then
        -- Those that have a place, and those that asked for one before.
        select count(*) into before from usage_export.service_call c
        where c.service = of_service and c.call_id <> of_call
          and (c.turn_at is not null or (c.asked_at, c.call_id) < (call.asked_at, call.call_id));
        if before >= at_once then
          return query select 'busy', (before - at_once + 1)::double precision;
          return;
        end if;
        call.turn_at := greatest(pace.next_at, at);
        update usage_export.service_pace set next_at = call.turn_at + make_interval(secs => 1 / per_second)
        where service = of_service;
        update usage_export.service_call
        set turn_at = call.turn_at, until = call.turn_at + make_interval(secs => lives_seconds)
        where call_id = of_call;
      end if;
      return query select 'turn', greatest(extract(epoch from call.turn_at - at)::double precision * 1000, 0);
    end
    $$
  `.execute(db);
  await sql`
    comment on function usage_export.take_turn(text, uuid, double precision, integer, double precision) is
    'Asks for a place among the calls that a service may get at once, and for a turn by its rate. turn: it has both, and starts after wait_ms; busy: it has no place yet, and is so many places away from one; held: the service wants no call for wait_ms. Asked again for the same call it says what is left to wait.'
  `.execute(db);
}
