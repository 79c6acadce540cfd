-- For each visible series, how many slices have which status, how many due days are missing, and through which day it is fresh. Every replica
-- reads this at each scrape, so the slices of a whole series are read once, and only those of the others again.
--
-- A due day is missing if it has no slice, or one whose answer was read before the day was over ("unclosed"). A series is fresh through the
-- last day before its first day that was not read.
create or replace view usage_export.series_health as
with known as materialized (
  select * from usage_export.series_days
),
counted as materialized (
  select series_id, count(*) filter (where is_present)::integer as present,
    count(*) filter (where is_present and sl.fetched_at is not null)::integer as days_read,
    max(sl.usage_date) filter (where is_present and sl.fetched_at is not null) as last_read,
    count(*) filter (where sl.status = 'complete' and (is_due and is_unclosed) is not true)::integer as complete,
    count(*) filter (where sl.status = 'failed')::integer as failed, count(*) filter (where sl.status = 'suspect')::integer as suspect
  from known k
  join usage_export.slice sl using (series_id)
  cross join lateral (
    select sl.usage_date between k.due_from and k.due_until as is_due, sl.status = 'complete' and sl.closed_at is null as is_unclosed
  ) day
  cross join lateral (select is_due and not is_unclosed as is_present) due
  where k.is_whole is not true
  group by series_id
)
select k.*, case when k.is_whole then k.days else coalesce(c.complete, 0) end as complete, coalesce(c.failed, 0) as failed,
  coalesce(c.suspect, 0) as suspect,
  -- After a clock was set back, due_from may lie after due_until. A negative number would cancel out missing days of
  -- other series in a sum.
  case when k.is_whole then 0 else greatest(k.due_until - k.due_from + 1 - coalesce(c.present, 0), 0) end as missing,
  least(k.due_until, case
    when k.is_whole then k.due_until
    -- While a run reads the newest day, most series lack only this day. Only the days of the others are examined one by one.
    when c.days_read = c.last_read - k.due_from + 1 then c.last_read
    else (
      select coalesce(max(day), k.due_from - 1)
      from (
        select sl.usage_date as day, (row_number() over (order by sl.usage_date))::integer as n
        from usage_export.slice sl
        where sl.series_id = k.series_id and sl.usage_date between k.due_from and k.due_until and sl.fetched_at is not null
          and not (sl.status = 'complete' and sl.closed_at is null)
      ) numbered
      where day = k.due_from + n - 1
    )
  end) as fresh_through
from known k
left join counted c using (series_id);
