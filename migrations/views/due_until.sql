-- The last due day of a series. A day is due once a run that reads it has begun, or once the next scheduled time is past, even if no worker
-- noticed that. No day becomes due for a series without a window whose answers carry no date. Today is never due.
create or replace function usage_export.due_until(
  due_through date, next_due_at timestamptz, undated_since timestamptz, window_days integer
)
returns date language sql stable parallel safe
return case
  when now() >= next_due_at and (undated_since is null or window_days is not null) then (now() at time zone 'UTC')::date - 1
  else least(due_through, (now() at time zone 'UTC')::date - 1)
end;
