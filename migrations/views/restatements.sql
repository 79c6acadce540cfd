create or replace view bi.restatements as
select s.project_id, s.project, s."grouping", s.filter, c.usage_date, g.display as group_value, c.kind, m.metric,
  m.old_value, m.new_value, m.old_extra_metrics, m.new_extra_metrics,
  c.revision, c.seen_at, (c.seen_at at time zone 'UTC')::date - c.usage_date as days_late,
  s.source
from usage_export.row_revision c
join usage_export.series s using (series_id)
join usage_export.group_value g using (group_id)
-- The earlier row is looked up for each row: a plain join would read the superseded rows of all days, whatever days are asked for.
left join lateral (
  select * from usage_export.superseded_row o
  where o.series_id = c.series_id and o.usage_date = c.usage_date and o.group_id = c.group_id and o.revision = c.revision - 1
  limit 1
) old on true
cross join lateral (values
  {{metric: ('$m', old.$m, c.$m, null::jsonb, null::jsonb)}},
  ('dollars', old.dollars, c.dollars, null, null),
  ('extra_metrics', null, null, old.extra_metrics, c.extra_metrics)
) as m (metric, old_value, new_value, old_extra_metrics, new_extra_metrics)
where c.restates and s.superseded_at is null
  and (m.old_value is distinct from m.new_value or m.old_extra_metrics is distinct from m.new_extra_metrics);

comment on view bi.restatements is 'Every change of a number after its day had first been stored, one row per metric.';
comment on column bi.restatements.kind is 'changed; appeared: the group is new; gone: the group is no longer there';
comment on column bi.restatements.old_value is 'The number before and after; NULL for none';
comment on column bi.restatements.new_value is 'The number before and after; NULL for none';
comment on column bi.restatements.old_extra_metrics is 'The same for the metric extra_metrics';
comment on column bi.restatements.new_extra_metrics is 'The same for the metric extra_metrics';
comment on column bi.restatements.seen_at is 'When the change was stored';
comment on column bi.restatements.days_late is 'Days from usage_date to the change';
