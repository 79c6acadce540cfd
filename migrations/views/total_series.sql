-- For each project and filter, a configured series of usage whose groups add up to its total: the one that was read on the most of the last
-- 100 days. If several were read on as many days, the first in the order of groupings, which begins with none.
create or replace view usage_export.total_series as
select distinct on (s.project_id, s.filter_key)
  s.series_id, s.project_id, s.project, s.filter_key, s.filter, s."grouping", s.window_days
from usage_export.series s
cross join lateral (
  select count(*) as days from usage_export.slice sl
  where sl.series_id = s.series_id and sl.fetched_at is not null and sl.usage_date >= (now() at time zone 'UTC')::date - 100
) read
where s.source = 'usage' and s.superseded_at is null and s.retired_at is null and s."grouping" not in ({{overlapping}})
order by s.project_id, s.filter_key, read.days desc,
  array_position(array[{{totals}}], s."grouping");
