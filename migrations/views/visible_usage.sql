-- The usage of the newest answers, for every series that is shown. usage_export.visible_cost has the billing.
create or replace view usage_export.visible_usage as
select s.project_id, s.project, r.usage_date, s."grouping", s.filter, s.filter_key, r.group_id, g.display as group_value,
  {{metric: r.$m}}, r.extra_metrics,
  usage_export.finality(r.usage_date, s.window_days, sl.closed_at, now()) as finality,
  r.revision, r.first_seen_at, r.last_changed_at, g.group_key
from usage_export.slice_row r
join usage_export.series s using (series_id)
-- Each row has a slice and a group. The outer joins let the planner leave them out if nobody asks for the finality or the group's value.
left join usage_export.slice sl using (series_id, usage_date)
left join usage_export.group_value g using (group_id)
where not r.gone and s.superseded_at is null and s.source = 'usage';
