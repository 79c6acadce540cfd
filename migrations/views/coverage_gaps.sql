create or replace view bi.coverage_gaps as
select project_id, project, "grouping", filter, status, min(usage_date) as from_date, max(usage_date) as to_date,
  count(*)::integer as days, (array_agg(error order by usage_date desc))[1] as error, source
from (
  select c.*, c.usage_date - (row_number() over (
    partition by source, project_id, "grouping", filter, status, error is null order by usage_date))::integer as stretch
  from bi.coverage c where status = 'failed' or (status = 'missing' and error is not null)
) stretches
-- A stretch does not mix days that were read before they were over with days that were never read.
group by source, project_id, project, "grouping", filter, status, error is null, stretch
union all
-- The missing days without an error: the days that were never read.
select project_id, project, "grouping", filter, 'missing', from_date, to_date, to_date - from_date + 1, null, source
from usage_export.unread_stretch;

comment on view bi.coverage_gaps is 'Stretches of days that are missing or failed, one row per stretch.';
comment on column bi.coverage_gaps.status is 'missing or failed, as in bi.coverage';
comment on column bi.coverage_gaps.from_date is 'The first and the last day of the stretch';
comment on column bi.coverage_gaps.to_date is 'The first and the last day of the stretch';
comment on column bi.coverage_gaps.days is 'How many days the stretch has';
comment on column bi.coverage_gaps.error is 'Why its newest day is not complete';
