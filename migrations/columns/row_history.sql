-- Comments on the columns of every view that says how a row came to be.
comment on column :view.revision is 'How many times this row has been written: 1 until a number changes';
comment on column :view.first_seen_at is 'When this group was first stored for this day';
comment on column :view.last_changed_at is 'When a number of this row last changed';
