// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // Places that are given back and turns that are asked for go in one statement, for all calls of a process that come at the
  // same moment: a statement for each cost more than the calls. While nobody else waits, a process gets turns ahead, which it
  // uses on places that it has. take_turn stays for workers of the version before this one.
  await sql`
    create function usage_export.take_turns(
      of_service text, ended uuid[], wanted uuid[], ahead integer, per_second double precision, at_once integer,
      lives_seconds double precision, ahead_seconds double precision
    )
    returns table (call_id uuid, outcome text, wait_ms double precision)
    language plpgsql set search_path = pg_catalog as $$
    #variable_conflict use_column
    declare
      pace      usage_export.service_pace;
      at        timestamptz;
      last_turn timestamptz;
      free      integer;
      took      integer;
      granted   integer := 0;
    begin
      select * into pace from usage_export.service_pace where service = of_service for update;
      if not found then
        insert into usage_export.service_pace (service) values (of_service) on conflict do nothing;
        select * into pace from usage_export.service_pace where service = of_service for update;
      end if;
      at := clock_timestamp();
      delete from usage_export.service_call where call_id = any(ended) or (service = of_service and until < at);
      if pace.held_until > at then
        return query
          select w, 'held', extract(epoch from pace.held_until - at)::double precision * 1000 from unnest(wanted) w;
        return;
      end if;

      -- In the order of asking, also among those that ask together.
      insert into usage_export.service_call (call_id, service, asked_at, until)
      select w.call_id, of_service, at + w.place * interval '1 microsecond', at + make_interval(secs => lives_seconds)
      from unnest(wanted) with ordinality w (call_id, place)
      on conflict (call_id) do update set until = excluded.until;

      select at_once - count(*) into free from usage_export.service_call
      where service = of_service and turn_at is not null;
      -- A place is kept for each that asked before, also where it is another process's, which comes for it.
      with next as (
        select call_id, asked_at from usage_export.service_call
        where service = of_service and turn_at is null order by asked_at, call_id limit greatest(free, 0)
      ), mine as (
        select call_id, greatest(pace.next_at, at)
          + (row_number() over (order by asked_at, call_id) - 1) * make_interval(secs => 1 / per_second) as turn_at
        from next where call_id = any(wanted)
      ), turns as (
        update usage_export.service_call c
        set turn_at = mine.turn_at, until = mine.turn_at + make_interval(secs => lives_seconds)
        from mine where c.call_id = mine.call_id
        returning c.turn_at
      )
      select count(*), max(turn_at) into took, last_turn from turns;
      if took > 0 then
        pace.next_at := last_turn + make_interval(secs => 1 / per_second);
      end if;
      if ahead > 0 and not exists (
        select from usage_export.service_call where service = of_service and turn_at is null and call_id <> all(wanted)
      ) then
        pace.next_at := greatest(pace.next_at, at);
        granted := least(ahead, ceil(extract(epoch from at - pace.next_at + make_interval(secs => ahead_seconds)) * per_second));
        granted := greatest(granted, 0);
        return query
          select null::uuid, 'ahead', extract(epoch from pace.next_at - at)::double precision * 1000 + n * 1000 / per_second
          from generate_series(0, granted - 1) n;
        pace.next_at := pace.next_at + make_interval(secs => granted / per_second);
      end if;
      update usage_export.service_pace set next_at = pace.next_at where service = of_service and next_at <> pace.next_at;

      return query
        select call_id, case when turn_at is null then 'busy' else 'turn' end,
          case when turn_at is null then (place + took - free)::double precision
            else greatest(extract(epoch from turn_at - at)::double precision * 1000, 0) end
        from (
          select call_id, turn_at, row_number() over (partition by turn_at is null order by asked_at, call_id) as place
          from usage_export.service_call where service = of_service
        ) c
        where call_id = any(wanted);
    end
    $$
  `.execute(db);
  await sql`
    comment on function usage_export.take_turns(text, uuid[], uuid[], integer, double precision, integer, double precision, double precision) is
    'Gives back the places of calls that ended, and asks for a place among the calls that a service may get at once, and for a turn by its rate, for others, in their order. turn: the call has both, and starts after wait_ms; busy: it has no place yet, and is so many places away from one; held: the service wants no call for wait_ms; ahead, for no call: a turn after wait_ms on a place that the process has already, as far as nobody else waits and the turn comes soon. Asked again for the same call it says what is left to wait.'
  `.execute(db);
}
