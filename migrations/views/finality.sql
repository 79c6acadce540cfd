-- The finality of a day at a moment, from its date, the window that reads it again, and its first reading after it was over. The body is
-- parsed here, so that nothing in the search path of a view's reader can replace what it uses.
create or replace function usage_export.finality(usage_date date, window_days integer, closed_at timestamptz, seen_from timestamptz)
returns text language sql immutable parallel safe
return case
  when seen_from < (usage_date + 1)::timestamp at time zone 'UTC' then 'open'
  when closed_at is null or closed_at > seen_from then 'open'
  when usage_date + window_days >= (seen_from at time zone 'UTC')::date then 'settling'
  else 'final'
end;
