-- How complete the due slices of each project and source are. Every replica reads this at each scrape, so each slice is read once, where other
-- views take several passes.
--
-- A due day is missing if it has no slice, or one whose answer was read before the day was over ("unclosed"). A series is fresh through the
-- last day before its first missing day. If as many slices were read as there are days from the first due one to the newest one read, no day
-- between them is missing. Otherwise the first missing day is searched for, which is rare and slow.
create or replace view usage_export.completeness as
with known as materialized (
  select s.series_id, s.project_id, s.project, s.source, s.is_active, s.due_from, s.due_until, stored.days,
    -- Then every slice counts as complete, and if any day is due, none is missing.
    stored.are_good and (
      s.due_from is null
      or stored.first_day >= s.due_from and stored.last_day <= s.due_until and stored.days = s.due_until - s.due_from + 1
    ) as is_whole
  from (
    -- The due days are those of due_series, which would be another pass over the series.
    select series_id, project_id, project, source, retired_at is null as is_active, case when retired_at is null then due_from end as due_from,
      case when retired_at is null and due_from is not null
        then usage_export.due_until(due_through, next_due_at, undated_since, window_days)
      end as due_until
    from usage_export.series where superseded_at is null
  ) s
  left join usage_export.stored_days stored using (series_id)
),
counted as materialized (
  select series_id, count(*) filter (where due.due and not due.unclosed)::integer as present,
    count(*) filter (where due.due and not due.unclosed and sl.fetched_at is not null)::integer as read,
    max(sl.usage_date) filter (where due.due and not due.unclosed and sl.fetched_at is not null) as last_read,
    count(*) filter (where sl.status = 'complete' and (due.due and due.unclosed) is not true)::integer as complete,
    count(*) filter (where sl.status = 'failed')::integer as failed, count(*) filter (where sl.status = 'suspect')::integer as suspect
  from known k
  join usage_export.slice sl using (series_id)
  cross join lateral (
    select sl.usage_date between k.due_from and k.due_until as due,
      sl.status = 'complete' and sl.closed_at is null and sl.usage_date <= k.due_until as unclosed
  ) due
  where k.is_whole is not true
  group by series_id
),
health as (
  select k.*, case when k.is_whole then k.days else coalesce(c.complete, 0) end as complete, coalesce(c.failed, 0) as failed,
    coalesce(c.suspect, 0) as suspect,
    -- After a clock was set back, due_from may lie after due_until. A negative number would cancel out missing days of
    -- other series in a sum.
    case when k.is_whole then 0 else greatest(k.due_until - k.due_from + 1 - coalesce(c.present, 0), 0) end as missing,
    least(k.due_until, case
      when k.is_whole then k.due_until
      when coalesce(c.read, 0) = 0 then k.due_from - 1
      when c.read = c.last_read - k.due_from + 1 then c.last_read
      else (
        select min(day)::date - 1
        from generate_series(k.due_from::timestamp, k.due_until::timestamp, interval '1 day') as day
        where not exists (
          select from usage_export.slice sl
          where sl.series_id = k.series_id and sl.usage_date = day::date and sl.fetched_at is not null
            and not (sl.status = 'complete' and sl.closed_at is null)
        )
      )
    end) as fresh_through
  from known k
  left join counted c using (series_id)
)
select project_id, source, max(project) as project, (count(*) filter (where is_active))::integer as series,
  sum(complete)::integer as complete, coalesce(sum(missing) filter (where is_active), 0)::integer as missing,
  coalesce(sum(failed) filter (where is_active), 0)::integer as failed,
  coalesce(sum(suspect) filter (where is_active), 0)::integer as suspect, min(fresh_through) filter (where is_active) as fresh_through
from health group by source, project_id;
