create or replace view bi.usage_anomalies as
select s.project_id, s.project, s.filter, s.filter_key = '{}' as unfiltered, j.usage_date, j.verdict as direction, j.metric,
  j.amount, j.expected, j.low, j.high, j.judged_at,
  -- Open for at least 12 hours: days that are judged together, as after an outage, must not end it before anybody was notified.
  j.judged_at > now() - interval '14 days' and not exists (
    select from usage_export.judged_day later
    where later.project_id = j.project_id and later.filter_key = j.filter_key and later.usage_date > j.usage_date
      and later.verdict = 'normal' and later.judged_at >= j.judged_at + interval '12 hours'
  ) as is_open
from usage_export.judged_day j
join usage_export.series s using (series_id)
where j.verdict in ('high', 'low');

comment on view bi.usage_anomalies is 'Final days whose usage was unusual compared with the weeks before, at most one row a project, filter and day. A day is judged once, when it has become final; nothing is judged that was final before the feature was there.';
\ir ../columns/project.sql
comment on column bi.usage_anomalies.filter is 'The filter''s name in the configuration';
comment on column bi.usage_anomalies.unfiltered is 'Whether the filter has no conditions: the row is of all usage of the project';
comment on column bi.usage_anomalies.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column bi.usage_anomalies.direction is 'high: more than usual; low: less than usual';
comment on column bi.usage_anomalies.metric is 'The metric that was furthest off, by the name of its column in bi.usage_total';
comment on column bi.usage_anomalies.amount is 'The exact amount of the day when it was judged';
comment on column bi.usage_anomalies.expected is 'What was expected of the day: an estimate';
comment on column bi.usage_anomalies.low is 'Below this estimate the day was unusual';
comment on column bi.usage_anomalies.high is 'Above this estimate the day was unusual';
comment on column bi.usage_anomalies.judged_at is 'When the day was judged';
comment on column bi.usage_anomalies.is_open is 'Whether the alert is open: until a later day was as usual, at least half a day, at most 14 days';
