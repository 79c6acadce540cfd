-- bi.usage_as_of chooses from these rows, so that it needs no rights that its caller lacks. A row is one revision under one name of its series. If
-- another series had the name in between, there are two rows.
create or replace view bi.usage_history as
select s.project_id, p.project, c.usage_date, s."grouping", p.filter, g.display as group_value,
  {{metric: c.$m}}, c.extra_metrics,
  c.revision, c.first_seen_at, c.seen_at as last_changed_at, c.kind,
  greatest(c.seen_at, p.shown_from) as shown_from, least(c.superseded_at, p.shown_until) as shown_until,
  s.window_days, sl.closed_at
from usage_export.row_revision c
join usage_export.series s using (series_id)
join usage_export.series_period p using (series_id)
join usage_export.slice sl using (series_id, usage_date)
join usage_export.group_value g using (group_id)
where c.kind <> 'gone' and s.source = 'usage'
  -- One expression, because the planner expects each comparison to leave a third, and would look up each slice by itself.
  and case when c.superseded_at <= p.shown_from or p.shown_until <= c.seen_at then false else true end;

comment on view bi.usage_history is 'Every number that was ever shown, one row per series, day, value and revision. Add up only what was shown at the same moment.';
comment on column bi.usage_history.kind is 'appeared: the group is new; changed';
comment on column bi.usage_history.shown_from is 'Since when and until when the views showed it; NULL while they do';
comment on column bi.usage_history.shown_until is 'Since when and until when the views showed it; NULL while they do';
comment on column bi.usage_history.window_days is 'How many days back the series is read again';
comment on column bi.usage_history.closed_at is 'When the day was first read after it was over';
