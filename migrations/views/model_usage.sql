-- The usage by model of every series that is shown, filtered or not: one row a metric that was used.
create or replace view usage_export.model_usage as
select s.project_id, s.project, s.filter_key, r.usage_date, r.group_id, g.display as model, m.metric, m.quantity,
  usage_export.finality(r.usage_date, s.window_days, sl.closed_at, now()) as finality
from usage_export.snapshot_row r
join usage_export.series s using (series_id)
join usage_export.slice sl using (series_id, usage_date)
join usage_export.group_value g using (group_id)
cross join lateral (values
  ('hours', r.hours), ('total_hours', r.total_hours), ('agent_hours', r.agent_hours), ('tokens_in', r.tokens_in),
  ('tokens_out', r.tokens_out), ('tts_characters', r.tts_characters), ('requests', r.requests)
) as m (metric, quantity)
where not r.gone and s.superseded_at is null and s."grouping" = 'model' and m.quantity > 0;
