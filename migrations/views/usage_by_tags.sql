create or replace view bi.usage_by_tags as
select project_id, project, usage_date, group_value as tags,
  hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'tags' and filter_key = '{}';

comment on view bi.usage_by_tags is 'All usage by tags, one row a project, day and value.';
comment on column bi.usage_by_tags.project_id is 'The service''s identifier of the project';
comment on column bi.usage_by_tags.project is 'The project''s name in the configuration';
comment on column bi.usage_by_tags.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column bi.usage_by_tags.tags is 'The set of tags of the requests, a sorted JSON array; its amounts are not split over single tags; NULL for no value';
comment on column bi.usage_by_tags.hours is 'Hours of audio, in hours; NULL where the service sent none';
comment on column bi.usage_by_tags.total_hours is 'Total hours, in hours, as the service counts them; NULL where it sent none';
comment on column bi.usage_by_tags.agent_hours is 'Hours of agent connections, in hours; NULL where the service sent none';
comment on column bi.usage_by_tags.tokens_in is 'Tokens received, a count; NULL where the service sent none';
comment on column bi.usage_by_tags.tokens_out is 'Tokens produced, a count; NULL where the service sent none';
comment on column bi.usage_by_tags.tts_characters is 'Characters turned into speech, a count; NULL where the service sent none';
comment on column bi.usage_by_tags.requests is 'Requests, a count; NULL where the service sent none';
comment on column bi.usage_by_tags.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column bi.usage_by_tags.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.usage_by_tags.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.usage_by_tags.first_seen_at is 'When this group was first stored for this day';
comment on column bi.usage_by_tags.last_changed_at is 'When a number of this row last changed';
