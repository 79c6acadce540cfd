-- A row that was superseded is compared with what it is now; all others are as they stayed. A few sums a day: of the amounts
-- as they stayed, and of what was wrong from one day to another. Running sums of where each begins and ends make the curve.
create or replace view bi.restatement_curve as
select s.project_id, s.project, s."grouping", s.filter, curve.metric, curve.days_after,
  round(greatest(1 - curve.wrong / curve.final, 0), 9) as known_share, curve.days::integer as days
from usage_export.series s
cross join lateral (
  with change as materialized (
    -- until_day is null where it is as it stayed.
    select usage_date, from_day, until_day, came_late, sum(final_requests) as final_requests,
      sum(final_hours) as final_hours, sum(abs(final_requests - requests)) as wrong_requests,
      sum(abs(final_hours - hours)) as wrong_hours
    from (
      select r.usage_date, r.revision = 1 and r.restates as came_late,
        (r.last_changed_at at time zone 'UTC')::date - r.usage_date as from_day, null::integer as until_day,
        coalesce(r.requests, 0) as requests, coalesce(r.requests, 0) as final_requests,
        coalesce(r.hours, 0) as hours, coalesce(r.hours, 0) as final_hours
      from usage_export.snapshot_row r
      where r.series_id = s.series_id
      union all
      select old.usage_date, old.revision = 1 and old.restates,
        (old.last_changed_at at time zone 'UTC')::date - old.usage_date,
        (old.superseded_at at time zone 'UTC')::date - old.usage_date,
        coalesce(old.requests, 0), coalesce(r.requests, 0), coalesce(old.hours, 0), coalesce(r.hours, 0)
      from usage_export.superseded_row old
      join usage_export.snapshot_row r using (series_id, usage_date, group_id)
      where old.series_id = s.series_id
    ) changes
    group by usage_date, from_day, until_day, came_late
  ), day as (
    select sl.usage_date, case when min(c.from_day) = 0 then 0 else 1 end as first_read
    from usage_export.slice sl
    left join change c using (usage_date)
    where sl.series_id = s.series_id and sl.closed_at < (sl.usage_date + 2)::timestamp at time zone 'UTC'
      and usage_export.finality(sl.usage_date, s.window_days, sl.closed_at, now()) = 'final'
    group by sl.usage_date
  ), step as materialized (
    select metric.metric, edge.days_after, edge.final, edge.wrong, edge.days
    from day d
    left join change c using (usage_date)
    cross join lateral (values
      ('requests', coalesce(c.final_requests, 0), coalesce(c.wrong_requests, 0)),
      ('hours', coalesce(c.final_hours, 0), coalesce(c.wrong_hours, 0))
    ) as metric (metric, final, wrong)
    cross join lateral (values
      (d.first_read, case when c.until_day is null then metric.final else 0 end, 0, 0),
      -- A group that was not there yet.
      (d.first_read, 0, case when c.came_late then metric.final else 0 end, 0),
      (c.from_day, 0, case when c.came_late then -metric.final else 0 end, 0),
      (greatest(c.from_day, d.first_read), 0, metric.wrong, 0),
      (greatest(c.until_day, d.first_read), 0, -metric.wrong, 0)
    ) as edge (days_after, final, wrong, days)
    where edge.final <> 0 or edge.wrong <> 0
    union all
    select metric, d.first_read, 0, 0, 1 from day d cross join (values ('requests'), ('hours')) as metric (metric)
  )
  select metric, days_after, sum(sum(final)) over so_far as final, sum(sum(wrong)) over so_far as wrong,
    sum(sum(days)) over so_far as days
  from (
    select * from step
    union all
    select metric, days_after, 0, 0, 0
    from (values ('requests'), ('hours')) as metric (metric)
    cross join generate_series(0, (select greatest(s.window_days, max(step.days_after)) from step)) as days_after
  ) steps
  group by metric, days_after
  window so_far as (partition by metric order by days_after)
) curve
where s.superseded_at is null and s.source = 'usage' and curve.final > 0;

comment on view bi.restatement_curve is 'How much of a day is known how soon, one row a series, metric and number of days: of all final days that were read by the day after at the latest, the share of their final amounts that was stored as it is now. Days that were first read later say nothing of it and do not count; without such days a series has no row. What the service changes after a day was last read is not known to it. Of usage alone: an amount that is billed is also corrected for other reasons than late usage.';
\ir ../columns/project.sql
comment on column bi.restatement_curve."grouping" is 'The dimension the usage is grouped by, or none';
comment on column bi.restatement_curve.filter is 'The filter''s name in the configuration';
comment on column bi.restatement_curve.metric is 'The metric, by the name of its column: requests or hours. The other metrics have no curve';
comment on column bi.restatement_curve.days_after is 'Days from the day of the usage to the day that is looked back from, both in UTC: 0 is the day itself, which is known only where today is read as well';
comment on column bi.restatement_curve.known_share is 'The share of the final amount that was known by the end of that day, 0 to 1. Group by group, so that what moved between groups was not known; an amount that was too high counts like one that was as much too low';
comment on column bi.restatement_curve.days is 'How many final days it rests on, a count';
