create or replace view bi.usage_anomalies as
select s.project_id, s.project, s.filter, s.filter_key = '{}' as unfiltered, j.usage_date, j.verdict as direction, j.metric,
  j.amount, j.expected, j.low, j.high, j.judged_at,
  -- An anomaly is open for at least 12 hours. Otherwise days that are judged together, as after an outage, could end it before it is notified.
  j.judged_at > now() - interval '14 days' and not exists (
    select from usage_export.judged_day later
    where later.project_id = j.project_id and later.filter_key = j.filter_key and later.usage_date > j.usage_date
      and later.verdict = 'normal' and later.judged_at >= j.judged_at + interval '12 hours'
  ) as is_open,
  case when j.is_final then 'final' else 'settling' end as finality
from usage_export.judged_day j
join usage_export.series s using (series_id)
where j.verdict in ('high', 'low');

comment on view bi.usage_anomalies is 'Days with unusual usage, at most one row per project, filter and day. The newest day is judged when it is read, but then can only be found high. Every day is judged when it is final.';
comment on column bi.usage_anomalies.direction is 'high or low';
comment on column bi.usage_anomalies.amount is 'The day''s amount when it was judged';
comment on column bi.usage_anomalies.expected is 'What was expected, an estimate';
comment on column bi.usage_anomalies.low is 'Outside of these bounds a day is unusual';
comment on column bi.usage_anomalies.high is 'Outside of these bounds a day is unusual';
comment on column bi.usage_anomalies.judged_at is 'When the day was found unusual';
comment on column bi.usage_anomalies.is_open is 'Whether its alert is open: until a later day is as usual, at most 14 days';
comment on column bi.usage_anomalies.finality is 'settling if late usage may still change the day, otherwise final';
