-- Whether a forecast takes the amount of a day as it is. A day that was read two days later counts as known, as most late usage has come by then.
create or replace function usage_export.is_known(usage_date date, finality text, fetched_at timestamptz)
returns boolean
language sql immutable parallel safe
return finality = 'final' or (finality = 'settling' and (fetched_at at time zone 'UTC')::date >= usage_date + 2);
