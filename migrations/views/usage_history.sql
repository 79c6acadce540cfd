-- What bi.usage_as_of chooses from: with it that function needs no rights that its caller has not. A row is what one revision
-- showed under one name, as a filter's name may have had other conditions in between.
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
  -- In one expression: the planner takes each comparison for a choice of a third, and would look up each slice by itself.
  and case when c.superseded_at <= p.shown_from or p.shown_until <= c.seen_at then false else true end;

comment on view bi.usage_history is 'Every number that was ever shown, one row a project, grouping, filter, day, value, revision and name, with when. For one moment bi.usage_as_of chooses from it. Add up only what was shown at the same moment.';
\ir ../columns/project.sql
\ir ../columns/metrics.sql
\ir ../columns/row_history.sql
comment on column bi.usage_history."grouping" is 'The dimension the usage is grouped by, or none';
comment on column bi.usage_history.filter is 'The filter''s name in the configuration';
comment on column bi.usage_history.group_value is 'The value of the grouped dimension; NULL for no value';
comment on column bi.usage_history.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column bi.usage_history.kind is 'appeared: the group was not there before; changed: a number is another. While a group is gone it has no row';
comment on column bi.usage_history.shown_from is 'Since when these numbers were shown by the usage views, under these names';
comment on column bi.usage_history.shown_until is 'Until when, which does not belong to it; NULL while they are shown';
comment on column bi.usage_history.window_days is 'How many days back the series is read again, a count; NULL where it is not';
comment on column bi.usage_history.closed_at is 'When the day was first read after it was over; NULL while it was not';
