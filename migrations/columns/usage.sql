-- Comments on the columns of every view of usage a day. A view includes them by: \ir ../columns/usage.sql
comment on column :view.project_id is 'The service''s identifier of the project';
comment on column :view.project is 'The project''s name in the configuration';
comment on column :view.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column :view.hours is 'Hours of audio, in hours; NULL where the service sent none';
comment on column :view.total_hours is 'Total hours, in hours, as the service counts them; NULL where it sent none';
comment on column :view.agent_hours is 'Hours of agent connections, in hours; NULL where the service sent none';
comment on column :view.tokens_in is 'Tokens received, a count; NULL where the service sent none';
comment on column :view.tokens_out is 'Tokens produced, a count; NULL where the service sent none';
comment on column :view.tts_characters is 'Characters turned into speech, a count; NULL where the service sent none';
comment on column :view.requests is 'Requests, a count; NULL where the service sent none';
comment on column :view.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column :view.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column :view.revision is 'How many times this row has been written: 1 until a number changes';
comment on column :view.first_seen_at is 'When this group was first stored for this day';
comment on column :view.last_changed_at is 'When a number of this row last changed';
