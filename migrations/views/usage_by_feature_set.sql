create or replace view bi.usage_by_feature_set as
select project_id, project, usage_date, group_value as feature_set,
  hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests, extra_metrics,
  finality, revision, first_seen_at, last_changed_at
from usage_export.visible_row where "grouping" = 'feature_set' and filter_key = '{}';

comment on view bi.usage_by_feature_set is 'All usage by feature_set, one row a project, day and value.';
comment on column bi.usage_by_feature_set.project_id is 'The service''s identifier of the project';
comment on column bi.usage_by_feature_set.project is 'The project''s name in the configuration';
comment on column bi.usage_by_feature_set.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column bi.usage_by_feature_set.feature_set is 'The collection of features used; a sorted JSON array where there were several; NULL for no value';
comment on column bi.usage_by_feature_set.hours is 'Hours of audio, in hours; NULL where the service sent none';
comment on column bi.usage_by_feature_set.total_hours is 'Total hours, in hours, as the service counts them; NULL where it sent none';
comment on column bi.usage_by_feature_set.agent_hours is 'Hours of agent connections, in hours; NULL where the service sent none';
comment on column bi.usage_by_feature_set.tokens_in is 'Tokens received, a count; NULL where the service sent none';
comment on column bi.usage_by_feature_set.tokens_out is 'Tokens produced, a count; NULL where the service sent none';
comment on column bi.usage_by_feature_set.tts_characters is 'Characters turned into speech, a count; NULL where the service sent none';
comment on column bi.usage_by_feature_set.requests is 'Requests, a count; NULL where the service sent none';
comment on column bi.usage_by_feature_set.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column bi.usage_by_feature_set.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.usage_by_feature_set.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.usage_by_feature_set.first_seen_at is 'When this group was first stored for this day';
comment on column bi.usage_by_feature_set.last_changed_at is 'When a number of this row last changed';
