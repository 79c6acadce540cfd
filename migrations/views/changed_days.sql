-- The function runs with its owner's rights, because no view shows when a slice changed. Its body is parsed here, so that nothing in the
-- caller's search path can replace what it uses. A change that the statement does not see was made by a transaction whose number is at least
-- xmin. That number was given after every smaller one, so the changed_at of the change is later than changed_after of those.
create or replace function bi.changed_days(since timestamptz)
returns table (
  source text, project_id text, project text, "grouping" text, filter text, usage_date date, next_since timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC'
begin atomic
  with visible as (
    select greatest(since, (
      select sl.changed_after from usage_export.slice sl
      where sl.changed_at is not null and sl.changed_in < pg_snapshot_xmin(pg_current_snapshot())
      order by sl.changed_at desc limit 1
    )) as up_to
  ), changed as (
    select sl.series_id, sl.usage_date from usage_export.slice sl where sl.changed_at >= since
    union
    -- A day becomes final when the window has passed it, without any change.
    select sl.series_id, sl.usage_date
    from usage_export.series s join usage_export.slice sl using (series_id)
    where sl.changed_at is not null and sl.usage_date >= since::date - s.window_days and sl.usage_date < now()::date - s.window_days
  )
  -- A filter that was renamed or replaced has the days of both names.
  select distinct s.source, s.project_id, s.project, s."grouping", p.filter, c.usage_date, v.up_to
  from changed c join usage_export.series s using (series_id) join usage_export.series_period p using (series_id) cross join visible v;
end;

comment on function bi.changed_days(timestamptz) is 'Every day whose rows in the views of usage or of billed cost may have changed since that moment: one row per source, project, grouping, filter and day, even if it has no rows any more. next_since is the moment to remember for the next load, the same in each row; that load repeats the newest days. Give -infinity for all days.';
