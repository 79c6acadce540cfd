create or replace view bi.runs as
select run_id, kind, job, trigger, scheduled_for, started_at, finished_at,
  case when status = 'running' and projects_open is null and heartbeat_at < now() - interval '30 seconds' then 'interrupted'
    else status end as status,
  done.requests, done.slices_planned, done.slices_complete, done.slices_suspect, done.slices_failed, done.rows_changed, error,
  done.slices_undated, done.slices_stale
from usage_export.run r
cross join lateral (
  select coalesce(sum(requests), 0)::integer as requests, coalesce(sum(slices_planned), 0)::integer as slices_planned,
    coalesce(sum(slices_complete), 0)::integer as slices_complete, coalesce(sum(slices_suspect), 0)::integer as slices_suspect,
    coalesce(sum(slices_failed), 0)::integer as slices_failed, coalesce(sum(rows_changed), 0)::bigint as rows_changed,
    coalesce(sum(slices_undated), 0)::integer as slices_undated, coalesce(sum(slices_stale), 0)::integer as slices_stale
  from usage_export.run_project p where p.run_id = r.run_id
) done;

comment on view bi.runs is 'One row per run of a job.';
comment on column bi.runs.run_id is 'The run''s identifier';
comment on column bi.runs.kind is 'export or rotation';
comment on column bi.runs.job is 'The job''s name in the configuration';
comment on column bi.runs.trigger is 'What started it: schedule, manual, catchup or backfill';
comment on column bi.runs.scheduled_for is 'When it was due; NULL for a manual run';
comment on column bi.runs.started_at is 'When it started and ended; NULL while it runs';
comment on column bi.runs.finished_at is 'When it started and ended; NULL while it runs';
comment on column bi.runs.status is 'running; ok; failed: something was not stored; stopped: by a signal; interrupted: its process ended without recording an end';
comment on column bi.runs.requests is 'Usage requests it made';
comment on column bi.runs.slices_planned is 'Days of series that it was to read, completed, and failed';
comment on column bi.runs.slices_complete is 'Days of series that it was to read, completed, and failed';
comment on column bi.runs.slices_suspect is 'Slices whose answer was doubtful';
comment on column bi.runs.slices_failed is 'Days of series that it was to read, completed, and failed';
comment on column bi.runs.rows_changed is 'Rows that appeared, changed or disappeared';
comment on column bi.runs.error is 'What went wrong first';
comment on column bi.runs.slices_undated is 'Answers without dates, see bi.usage_snapshot';
comment on column bi.runs.slices_stale is 'Slices whose answer was dropped, as a newer one was stored';
