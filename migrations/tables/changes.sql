-- The transactions that changed the data behind questions about usage and cost.

create table usage_export.data_change (
  changed_in xid8        primary key default pg_current_xact_id(),
  changed_at timestamptz not null default now()
);
comment on table usage_export.data_change is 'The transactions of the last days that changed usage, cost, prices, keys or series';

create function usage_export.record_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into usage_export.data_change default values on conflict do nothing;
  return null;
end $$;

do $$
declare
  changed text;
begin
  foreach changed in array array[
    'series', 'slice', 'slice_row', 'undated_snapshot', 'group_value', 'price', 'price_tier', 'line_item', 'api_key', 'listed_key'
  ] loop
    execute format(
      'create trigger record_change after insert or update or delete or truncate on usage_export.%I
        for each statement execute function usage_export.record_change()', changed);
  end loop;
end $$;
