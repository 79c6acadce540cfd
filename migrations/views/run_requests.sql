create or replace view bi.run_requests as
select r.run_id, s.project_id, s.project, s.source, s."grouping", s.filter, r.first_day as from_date,
  r.last_day as to_date, r.outcome, r.ended_at, r.took_ms, r.rows_changed, r.error_code, r.error
from usage_export.run_request r
join usage_export.series s using (series_id);

comment on view bi.run_requests is 'One row a usage or billing request of a run that has an outcome. They are kept for 14 days after the run started, or as long as runs if that is less.';
comment on column bi.run_requests.run_id is 'The run, see bi.runs';
\ir ../columns/project.sql
comment on column bi.run_requests.source is 'usage or billing';
comment on column bi.run_requests."grouping" is 'What the numbers are grouped by: a dimension, several in alphabetical order with commas between them, or none';
comment on column bi.run_requests.filter is 'The filter''s name in the configuration';
comment on column bi.run_requests.from_date is 'The first day that was asked for; NULL if the service chose the days';
comment on column bi.run_requests.to_date is 'The last day that was asked for; NULL if the service chose the days';
comment on column bi.run_requests.outcome is 'The worst of its slices: complete; undated: the answer has no date and is in bi.usage_snapshot; stale: dropped, as one that was asked for later was there already; suspect; failed';
comment on column bi.run_requests.ended_at is 'When its outcome was recorded';
comment on column bi.run_requests.took_ms is 'Milliseconds from its last call until the answer had been read; NULL if the service was not asked';
comment on column bi.run_requests.rows_changed is 'Rows that appeared, changed or went, a count';
comment on column bi.run_requests.error_code is 'The kind of error that it failed with; NULL for any other outcome';
comment on column bi.run_requests.error is 'Why it failed, the first 200 characters; NULL for any other outcome';
