create or replace function bi.usage_as_of(as_of timestamptz)
returns table (
  project_id text, project text, usage_date date, "grouping" text, filter text, group_value text,
  hours numeric, total_hours numeric, agent_hours numeric, tokens_in numeric, tokens_out numeric,
  tts_characters numeric, requests numeric, extra_metrics jsonb,
  finality text, revision integer, first_seen_at timestamptz, last_changed_at timestamptz
)
language sql stable security definer set search_path = pg_catalog as $$
  select s.project_id, s.project, c.usage_date, s."grouping", s.filter, g.display,
    c.hours, c.total_hours, c.agent_hours, c.tokens_in, c.tokens_out, c.tts_characters, c.requests, c.extra_metrics,
    usage_export.finality(c.usage_date, s.window_days, sl.closed_at, as_of),
    c.revision, c.first_seen_at, c.seen_at
  from usage_export.row_revision c
  join usage_export.series s using (series_id)
  join usage_export.slice sl using (series_id, usage_date)
  join usage_export.group_value g using (group_id)
  where c.seen_at <= as_of and (c.superseded_at is null or c.superseded_at > as_of) and c.kind <> 'gone'
    and (s.superseded_at is null or s.superseded_at > as_of)
$$;

comment on function bi.usage_as_of(timestamptz) is 'What the usage views showed at that moment: every series, filtered or not, with the columns of bi.usage_filtered. An unfiltered series carries the name of its filter without conditions.';
