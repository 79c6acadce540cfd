// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // The function of before, but that no wait is longer than the configuration can mean: moments that a clock stored before it
  // was set back kept calls waiting until it had come there again.
  await sql`
    create or replace function usage_export.take_turns(
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
      moved     integer;
      granted   integer := 0;
      -- No turn is further away: there is one for each place, and those given ahead.
      horizon   interval := make_interval(secs => 1 + 2 * ahead_seconds + (at_once + 1) / per_second);
      spacing   interval := make_interval(secs => 1 / per_second);
    begin
      select * into pace from usage_export.service_pace where service = of_service for update;
      if not found then
        insert into usage_export.service_pace (service) values (of_service) on conflict do nothing;
        select * into pace from usage_export.service_pace where service = of_service for update;
      end if;
      at := clock_timestamp();
      delete from usage_export.service_call where call_id = any(ended) or (service = of_service and until < at);

      -- Whatever is further away than it can be was stored by a clock that has been set back since.
      if pace.held_until > at + pace.held_for then
        pace.held_until := at + pace.held_for;
        update usage_export.service_pace set held_until = pace.held_until where service = of_service;
      end if;
      if pace.next_at > at + horizon then
        pace.next_at := at + spacing;
      end if;
      update usage_export.service_call c
      set asked_at = least(c.asked_at, at), until = at + make_interval(secs => lives_seconds),
        turn_at = case when c.turn_at > at + horizon then pace.next_at + late.place * spacing else c.turn_at end
      from (
        select call_id, row_number() over (order by turn_at, asked_at, call_id) - 1 as place
        from usage_export.service_call
        where service = of_service and (
          asked_at > at + interval '1 second' or turn_at > at + horizon
          or until > at + horizon + make_interval(secs => lives_seconds)
        )
      ) late
      where c.call_id = late.call_id;
      get diagnostics moved = row_count;
      pace.next_at := pace.next_at + moved * spacing;

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
}
