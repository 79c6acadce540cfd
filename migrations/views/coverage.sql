create or replace view bi.coverage as
select s.project_id, s.project, s."grouping", s.filter, sl.usage_date,
  case when closing.is_missing then 'missing' else sl.status end as status,
  usage_export.finality(sl.usage_date, s.window_days,
    coalesce(sl.closed_at, case when sl.fetched_at is null then '-infinity'::timestamptz end), now()) as finality,
  sl.fetched_at, sl.rows,
  case
    when closing.is_missing then 'read before the day was over, at ' || to_char(sl.fetched_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI')
      || ' UTC, and not since'
    else sl.error
  end as error,
  s.filter_key = '{}' as unfiltered, s.filter_key as conditions, s.retired_at is null as active, s.source
from usage_export.slice sl
join usage_export.series s using (series_id)
cross join lateral (
  -- A join with due_series would read all of it.
  select sl.status = 'complete' and sl.closed_at is null and s.retired_at is null and sl.usage_date between s.due_from
    and usage_export.due_until(s.due_through, s.next_due_at, s.undated_since, s.window_days) as is_missing
) closing
-- Failures of series that are not configured any more are left out: nothing reads these again, so the failures would stay for ever.
where s.superseded_at is null and (s.retired_at is null or sl.status = 'complete')
union all
select s.project_id, s.project, s."grouping", s.filter, unread.day, 'missing',
  usage_export.finality(unread.day, s.window_days, '-infinity', now()), null, 0, null,
  s.filter_key = '{}', s.filter_key, true, s.source
from usage_export.unread_stretch s
cross join lateral (
  -- The limits leave no day out. Without them the planner expects 1000 days of each stretch, and compiles the query (JIT), which takes many
  -- times as long as the query itself. Each limit makes it expect a tenth.
  select s.from_date + n as day
  from (select n from generate_series(0, s.to_date - s.from_date) as n limit s.to_date - s.from_date + 1) n limit s.to_date - s.from_date + 1
) unread
union all
select s.project_id, s.project, s."grouping", s.filter, null, 'undated', null, newest.taken_at, newest.rows,
  'the service''s answers carry no date, so it is unknown which days their numbers are of; bi.usage_snapshot has them',
  s.filter_key = '{}', s.filter_key, true, s.source
from usage_export.series s
cross join lateral (
  select taken_at, rows from usage_export.undated_snapshot n where n.series_id = s.series_id order by snapshot_no desc limit 1
) newest
where s.undated_since is not null and s.window_days is null and s.superseded_at is null and s.retired_at is null;

comment on view bi.coverage is 'Whether the numbers of a day can be relied on, one row per series and day (slice).';
comment on column bi.coverage.usage_date is 'The day, in UTC; NULL if undated';
comment on column bi.coverage.status is 'complete: the newest answer is stored. suspect: it is doubtful. failed: the newest reading failed. missing: due, and not read since the day was over. undated: see bi.usage_snapshot. Suspect and failed days keep earlier rows';
comment on column bi.coverage.fetched_at is 'When the rows that are shown were read; NULL before the first';
comment on column bi.coverage.rows is 'How many rows it has';
comment on column bi.coverage.error is 'Why it is not complete';
