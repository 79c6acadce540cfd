-- For each series with due days, the newest day up to which all due days are read, and when any day was last read. A day is not read if it
-- has no good reading, or only readings from before its end.
create or replace view usage_export.fresh_series as
select s.series_id, s.project_id, s.project, s."grouping", s.filter, s.due_from, s.due_until,
  least(
    case
      when reading.last_day is null then s.due_from - 1
      -- Most series have as many read days as days. Only the days of the others are looked at one by one.
      when cardinality(reading.days) = reading.last_day - s.due_from + 1 then reading.last_day
      else (
        select coalesce(max(day), s.due_from - 1)
        from (select day, (row_number() over (order by day))::integer as n from unnest(reading.days) as day) numbered
        where day = s.due_from + n - 1
      )
    end,
    -- After a clock was set back, due_from may lie after due_until.
    s.due_until
  ) as fresh_through, reading.fetched_at, s.source
from usage_export.due_series s
left join (
  select sl.series_id, max(sl.fetched_at) as fetched_at,
    array_agg(sl.usage_date) filter (where is_read) as days, max(sl.usage_date) filter (where is_read) as last_day
  from usage_export.slice sl
  join usage_export.due_series d using (series_id)
  cross join lateral (
    select sl.fetched_at is not null and sl.usage_date between d.due_from and d.due_until
      and not (sl.status = 'complete' and sl.closed_at is null) as is_read
  ) read
  group by sl.series_id
) reading using (series_id);
