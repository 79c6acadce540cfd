-- Comments on the columns of every view of usage a day. A view includes them by: \ir ../columns/usage.sql
\ir ../columns/project.sql
\ir ../columns/row_history.sql
\ir ../columns/metrics.sql
comment on column :view.extra_metrics is 'Metrics the service sent beside the known ones, a JSON object of numbers; NULL where it sent none';
comment on column :view.finality is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
