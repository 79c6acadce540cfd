-- One pass over the rows of all groupings, where the views of one grouping would take a pass each.
create or replace view bi.usage_by_group as
select u.project_id, u.project, u.usage_date, u."grouping", u.group_value, coalesce(k.rotation, u.group_value) as lineage,
  u.hours, u.total_hours, u.agent_hours, u.tokens_in, u.tokens_out, u.tts_characters, u.requests, u.extra_metrics,
  u.finality, u.revision, u.first_seen_at, u.last_changed_at
from usage_export.visible_row u
left join usage_export.api_key k
  on k.project_id = u.project_id and k.api_key_id = case when u."grouping" = 'accessor' then u.group_value end
where u.filter_key = '{}' and u."grouping" <> 'none';

comment on view bi.usage_by_group is 'All usage by each grouping but none, one row a project, day, grouping and value. Choose one grouping: each of them has the same usage.';
comment on column bi.usage_by_group.project_id is 'The service''s identifier of the project';
comment on column bi.usage_by_group.project is 'The project''s name in the configuration';
comment on column bi.usage_by_group.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column bi.usage_by_group."grouping" is 'The dimension the usage is grouped by';
comment on column bi.usage_by_group.group_value is 'The value of the dimension; a sorted JSON array where there were several; NULL for no value';
comment on column bi.usage_by_group.lineage is 'The line to chart: of an accessor that a rotation made the rotation, whichever of its keys was used; the value itself otherwise';
comment on column bi.usage_by_group.hours is 'Hours of audio, in hours; NULL where the service sent none';
comment on column bi.usage_by_group.total_hours is 'Total hours, in hours, as the service counts them; NULL where it sent none';
comment on column bi.usage_by_group.agent_hours is 'Hours of agent connections, in hours; NULL where the service sent none';
comment on column bi.usage_by_group.tokens_in is 'Tokens received, a count; NULL where the service sent none';
comment on column bi.usage_by_group.tokens_out is 'Tokens produced, a count; NULL where the service sent none';
comment on column bi.usage_by_group.tts_characters is 'Characters turned into speech, a count; NULL where the service sent none';
comment on column bi.usage_by_group.requests is 'Requests, a count; NULL where the service sent none';
comment on column bi.usage_by_group.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column bi.usage_by_group.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.usage_by_group.revision is 'How many times this row has been written: 1 until a number changes';
comment on column bi.usage_by_group.first_seen_at is 'When this group was first stored for this day';
comment on column bi.usage_by_group.last_changed_at is 'When a number of this row last changed';
