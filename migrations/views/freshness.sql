create or replace view bi.freshness as
select project_id, project, "grouping", filter, fresh_through, due_from, due_until as due_through, fetched_at, source
from usage_export.series_health where due_from is not null
union all
select c.project_id, c.project, c."grouping", c.filter, null, null, null, c.fetched_at, c.source
from bi.coverage c
where c.status = 'undated' and not exists (
  select from usage_export.due_series s
  where s.source = c.source and s.project_id = c.project_id and s."grouping" = c."grouping" and s.filter = c.filter
);

comment on view bi.freshness is 'Per series, the newest day up to which nothing is missing.';
comment on column bi.freshness.fresh_through is 'The newest day up to which every due day was read after its end';
comment on column bi.freshness.due_through is 'The newest day that is due';
comment on column bi.freshness.fetched_at is 'When a day of the series was last read well';
