create or replace view bi.coverage_gaps as
select project_id, project, "grouping", filter, status, min(usage_date) as from_date, max(usage_date) as to_date,
  count(*)::integer as days, (array_agg(error order by usage_date desc))[1] as error, source
from (
  select c.*, c.usage_date - (row_number() over (
    partition by source, project_id, "grouping", filter, status, error is null order by usage_date))::integer as stretch
  from bi.coverage c where status = 'failed' or (status = 'missing' and error is not null)
) stretches
-- Days that were read before they were over are no stretch with those that never were.
group by source, project_id, project, "grouping", filter, status, error is null, stretch
union all
-- The missing days without an error: the days that were never read.
select project_id, project, "grouping", filter, 'missing', from_date, to_date, to_date - from_date + 1, null, source
from usage_export.unread_stretch;

comment on view bi.coverage_gaps is 'The stretches of days that are missing or failed, one row a stretch.';
\ir ../columns/project.sql
comment on column bi.coverage_gaps."grouping" is 'The dimension the numbers are grouped by, or none; for billing also several, joined by commas';
comment on column bi.coverage_gaps.filter is 'The filter''s name in the configuration';
comment on column bi.coverage_gaps.status is 'missing: due, and never read, or not since the day was over; failed: the newest reading failed';
comment on column bi.coverage_gaps.from_date is 'The first day of the stretch';
comment on column bi.coverage_gaps.to_date is 'The last day of the stretch';
comment on column bi.coverage_gaps.days is 'How many days the stretch has, a count';
comment on column bi.coverage_gaps.error is 'Why the newest day of the stretch failed, or is missing although it has rows; NULL when it was never read';
comment on column bi.coverage_gaps.source is 'Which breakdown of the service the numbers are from: usage or billing';
