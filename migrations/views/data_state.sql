-- Tells whether answers that were read in an earlier snapshot are still right. is_changed: a transaction that the earlier snapshot does not see
-- has changed what they are read from. circumstances: the server and the database, because after a failover or a restore another transaction may
-- have the same number; the day; and how many series have days that are due by the clock alone.
create or replace function usage_export.data_state(before pg_snapshot, out snapshot text, out circumstances text, out is_changed boolean)
language sql stable
begin atomic
  select pg_current_snapshot()::text,
    concat_ws(' ', pg_postmaster_start_time(), (select oid from pg_database where datname = current_database()),
      (now() at time zone 'UTC')::date, (select count(*) from usage_export.series where next_due_at <= now())),
    exists (
      select from usage_export.data_change where changed_in >= pg_snapshot_xmin(before) and not pg_visible_in_snapshot(changed_in, before)
    );
end;
