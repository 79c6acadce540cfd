-- The restatement curve of a series' totals: of its final days among the last 70 that were read by the day after at the latest, the sum
-- that was stored so many days after the day, divided by the sum that is stored now. Unlike in bi.restatement_curve, what moved from one
-- group to another counts as known, and every metric has a curve. No row with less than 7 such days.
create or replace view usage_export.known_share as
select s.series_id, s.project_id, known.metric, known.days_after, known.amount / known.final as known_share
from usage_export.total_series s
cross join lateral (
  with day as materialized (
    select sl.usage_date from usage_export.slice sl
    where sl.series_id = s.series_id and sl.usage_date >= (now() at time zone 'UTC')::date - 70
      and sl.closed_at < (sl.usage_date + 2)::timestamp at time zone 'UTC'
      and usage_export.finality(sl.usage_date, s.window_days, sl.closed_at, now()) = 'final'
  ), stored as materialized (
    -- What was stored from one day after the usage until another; until_day is null where it still is. Added up before it is split by
    -- metric, as a series may have thousands of groups.
    select m.metric, sums.from_day, sums.until_day, m.amount
    from (
      select (r.seen_at at time zone 'UTC')::date - r.usage_date as from_day,
        (r.superseded_at at time zone 'UTC')::date - r.usage_date as until_day,
        {{metric: sum(r.$m) as $m}}
      from usage_export.row_revision r
      join day using (usage_date)
      where r.series_id = s.series_id and r.kind <> 'gone' and r.usage_date >= (now() at time zone 'UTC')::date - 70
      group by from_day, until_day
    ) sums
    cross join lateral (values
      {{metric: ('$m', $m)}}
    ) as m (metric, amount)
  )
  select metric, days_after, sum(amount) filter (where until_day is null) as final,
    coalesce(sum(amount) filter (where from_day <= days_after and (until_day is null or until_day > days_after)), 0) as amount
  from stored cross join generate_series(1, s.window_days) as days_after
  where (select count(*) from day) >= 7
  group by metric, days_after
) known
where known.final > 0;
