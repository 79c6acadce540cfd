-- Per series with due days, the newest day up to which all due days are read, and when any day was last read. A day without a good
-- reading, or whose only readings were before its end although one after it is due, is not read.
create or replace view usage_export.fresh_series as
select s.series_id, s.project_id, s.project, s."grouping", s.filter, s.due_from, s.due_until,
  -- After a clock was set back, due_from may lie after due_until.
  least(coalesce(reading.unbroken_until, s.due_from - 1), s.due_until) as fresh_through, reading.fetched_at,
  s.source
from usage_export.due_series s
cross join lateral (
  select max(fetched_at) as fetched_at,
    -- Up to here there are as many read days as days.
    max(usage_date) filter (where is_read and usage_date = s.due_from + days_read - 1) as unbroken_until
  from (
    select usage_date, fetched_at, is_read,
      (count(*) filter (where is_read) over (order by usage_date))::integer as days_read
    from usage_export.slice sl
    cross join lateral (
      select sl.fetched_at is not null and sl.usage_date between s.due_from and s.due_until
        and not (sl.status = 'complete' and sl.closed_at is null and sl.usage_date <= s.closing_until) as is_read
    ) read
    where sl.series_id = s.series_id
  ) day
) reading;
