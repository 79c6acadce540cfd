-- The function runs with the rights of its caller. Its body is parsed here, so that nothing in the caller's search path can replace what it uses.
create or replace function bi.usage_as_of(as_of timestamptz)
returns table (
  project_id text, project text, usage_date date, "grouping" text, filter text, group_value text,
  {{metric: $m numeric}}, extra_metrics jsonb,
  finality text, revision integer, first_seen_at timestamptz, last_changed_at timestamptz
)
language sql stable
begin atomic
  select h.project_id, h.project, h.usage_date, h."grouping", h.filter, h.group_value,
    {{metric: h.$m}}, h.extra_metrics,
    usage_export.finality(h.usage_date, h.window_days, h.closed_at, as_of),
    h.revision, h.first_seen_at, h.last_changed_at
  from bi.usage_history h
  -- bi.usage_history tells why this is one expression.
  where case when h.shown_from <= as_of and (h.shown_until is null or h.shown_until > as_of) then true else false end;
end;

comment on function bi.usage_as_of(timestamptz) is 'What the usage views showed at that moment: every series, filtered or not, with the columns of bi.usage_filtered. Names of projects and filters are those of that moment. An unfiltered series carries the name of its filter without conditions.';
