create or replace view bi.usage_filtered as
select project_id, project, usage_date, "grouping", filter, group_value,
  hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where filter_key <> '{}';

comment on view bi.usage_filtered is 'Usage under a filter, one row a project, grouping, filter, day and value. Filters overlap: never add them up.';
comment on column bi.usage_filtered.project_id is 'The service''s identifier of the project';
comment on column bi.usage_filtered.project is 'The project''s name in the configuration';
comment on column bi.usage_filtered.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column bi.usage_filtered."grouping" is 'The dimension the usage is grouped by, or none';
comment on column bi.usage_filtered.filter is 'The filter''s name in the configuration';
comment on column bi.usage_filtered.group_value is 'The value of the grouped dimension; NULL for no value';
comment on column bi.usage_filtered.hours is 'Hours of audio, in hours; NULL where the service sent none';
comment on column bi.usage_filtered.total_hours is 'Total hours, in hours, as the service counts them; NULL where it sent none';
comment on column bi.usage_filtered.agent_hours is 'Hours of agent connections, in hours; NULL where the service sent none';
comment on column bi.usage_filtered.tokens_in is 'Tokens received, a count; NULL where the service sent none';
comment on column bi.usage_filtered.tokens_out is 'Tokens produced, a count; NULL where the service sent none';
comment on column bi.usage_filtered.tts_characters is 'Characters turned into speech, a count; NULL where the service sent none';
comment on column bi.usage_filtered.requests is 'Requests, a count; NULL where the service sent none';
comment on column bi.usage_filtered.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column bi.usage_filtered.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.usage_filtered.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.usage_filtered.first_seen_at is 'When this group was first stored for this day';
comment on column bi.usage_filtered.last_changed_at is 'When a number of this row last changed';
