-- Comments on the columns of every view of the amounts of a day.
comment on column :view.usage_date is 'The day of the usage, a calendar day in UTC';
{{metric ";\n": comment on column :view.$m is '$meaning; NULL where the service sent none'}};
