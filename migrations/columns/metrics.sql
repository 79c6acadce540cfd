-- Comments on the columns of every view of the amounts of a day.
comment on column :view.usage_date is 'The day of the usage, a calendar day in UTC';
comment on column :view.hours is 'Hours of audio, in hours; NULL where the service sent none';
comment on column :view.total_hours is 'Total hours, in hours, as the service counts them; NULL where it sent none';
comment on column :view.agent_hours is 'Hours of agent connections, in hours; NULL where the service sent none';
comment on column :view.tokens_in is 'Tokens received, a count; NULL where the service sent none';
comment on column :view.tokens_out is 'Tokens produced, a count; NULL where the service sent none';
comment on column :view.tts_characters is 'Characters turned into speech, a count; NULL where the service sent none';
comment on column :view.requests is 'Requests, a count; NULL where the service sent none';
