-- What the service answered: series, their days, and the rows of each day with their history.

create table usage_export.series (
  series_id     integer     generated always as identity primary key,
  -- The breakdown of the service that the numbers are from.
  source        text        not null default 'usage' check (source in ('usage', 'billing')),
  project_id    text        not null,
  project       text        not null,
  "grouping"    text        not null,
  -- The conditions as canonical JSON; '{}' is all usage.
  filter_key    text        not null,
  filter        text        not null,
  -- Null without a window: then no date is sent.
  window_days   integer     check (window_days > 0),
  -- The due days. A run extends them. From next_due_at on, yesterday is due even if no run begins.
  due_from      date,
  due_through   date,
  next_due_at   timestamptz,
  -- Since when answers have carried no date; null while they carry one.
  undated_since timestamptz,
  -- Since when no export is configured for it.
  retired_at    timestamptz,
  -- Since when another series has its name. It is hidden from the views, so that no day is shown twice.
  superseded_at timestamptz,
  unique (source, project_id, "grouping", filter_key),
  -- A dimension or none; for billing also several dimensions, in alphabetical order. src/usage/dimensions.ts has their names.
  constraint series_grouping_check check ("grouping" ~ '^[a-z_]+(,[a-z_]+)*$' and (source = 'billing' or "grouping" !~ ','))
);
create unique index series_name on usage_export.series (source, project_id, "grouping", filter)
  where superseded_at is null;
comment on table usage_export.series is 'Streams of numbers: project, grouping and filter';

create table usage_export.series_period (
  series_id   integer     not null references usage_export.series,
  project     text        not null,
  filter      text        not null,
  -- -infinity for the first period, as the series had nothing to show before.
  shown_from  timestamptz not null,
  -- Null while it is shown.
  shown_until timestamptz
);
create index series_period_series on usage_export.series_period (series_id);
create unique index series_period_open on usage_export.series_period (series_id) where shown_until is null;
comment on table usage_export.series_period is 'When a series was shown, and under which names';

create table usage_export.configured (
  what   text primary key check (what in ('series', 'prices', 'budgets')),
  -- A hash of the configuration that was stored last.
  digest text not null
);
comment on table usage_export.configured is 'Which configuration the series, prices and budgets are of';

-- A fetch takes its number before its call. A slice never goes back to a lower one.
create sequence usage_export.fetch_no;

-- Every slice that is read again is updated every night. With room on its page an update touches no index and logs less.
create table usage_export.slice (
  series_id        integer     not null references usage_export.series,
  usage_date       date        not null,
  status           text        not null check (status in ('complete', 'suspect', 'failed')),
  -- The fetch whose rows are visible; 0 while there is none.
  fetch_no         bigint      not null default 0,
  fetched_at       timestamptz,
  -- When the first good fetch after the end of the day was stored. Until then its numbers are partial.
  closed_at        timestamptz,
  content_hash     text,
  rows             integer     not null default 0 check (rows >= 0),
  attempted_at     timestamptz not null default now(),
  -- Why the newest reading failed, and since when all have failed.
  error            text,
  error_code       text,
  failing_since    timestamptz,
  -- Why the newest answer is doubtful: it is empty, or has a fraction of what is stored, or its filter may have been ignored.
  suspect_why      text        check (suspect_why in ('empty', 'fall', 'filter-empty', 'filter-ignored')),
  -- The run that got the first doubtful answer, and when. An answer an hour or more later may confirm it.
  suspect_run      uuid,
  suspect_since    timestamptz,
  -- The newest doubtful fetch. An older fetch does not settle the doubt.
  suspect_fetch_no bigint,
  -- When the views last began to show it differently, in which transaction, and a moment before that transaction got its number. Later
  -- transactions have higher numbers, so that bi.changed_days knows up to when it sees every change.
  changed_at       timestamptz,
  changed_in       xid8,
  changed_after    timestamptz,
  primary key (series_id, usage_date)
) with (fillfactor = 80);
create index slice_changed on usage_export.slice (changed_at);
create index slice_refused on usage_export.slice (series_id) where error_code = 'unauthorized';
comment on table usage_export.slice is 'One series on one day: whether it is complete, and why not';

create table usage_export.group_value (
  group_id   integer generated always as identity primary key,
  "grouping" text    not null,
  -- The hash is unique, because a value may be longer than an index entry can be.
  key_hash   text    not null,
  group_key  text    not null,
  display    text,
  unique ("grouping", key_hash)
);
comment on table usage_export.group_value is
  'Values of dimensions: they are long and repeat every day, so a row holds their number';

-- The three tables of rows have no foreign keys: only the merge writes them, and checking two keys a row would double its time.
create table usage_export.slice_row (
  series_id       integer     not null,
  usage_date      date        not null,
  group_id        integer     not null,
  {{metric "\n  ": $m numeric check ($m >= 0 and $m < 'infinity'),}}
  -- Only rows of billing have dollars. Credits are negative.
  dollars         numeric     check (dollars > '-infinity' and dollars < 'infinity'),
  extra_metrics   jsonb,
  -- Whether the newest answer lacks the group. The row stays, so that its revisions go on if the group comes back.
  gone            boolean     not null default false,
  -- Whether the day had been stored before this revision: the first reading of a day is not a restatement.
  restates        boolean     not null default false,
  -- Whether the group was gone before this revision.
  returned        boolean     not null default false,
  revision        integer     not null check (revision > 0),
  first_seen_at   timestamptz not null,
  last_changed_at timestamptz not null,
  primary key (series_id, usage_date, group_id)
) with (fillfactor = 90);
create index slice_row_restates on usage_export.slice_row (series_id, usage_date) where restates;
comment on table usage_export.slice_row is 'The newest numbers of each group of a slice';

create table usage_export.superseded_row (
  series_id       integer     not null,
  usage_date      date        not null,
  group_id        integer     not null,
  {{metric "\n  ": $m numeric,}}
  dollars         numeric,
  extra_metrics   jsonb,
  gone            boolean     not null,
  restates        boolean     not null,
  returned        boolean     not null,
  revision        integer     not null check (revision > 0),
  first_seen_at   timestamptz not null,
  last_changed_at timestamptz not null,
  superseded_at   timestamptz not null,
  primary key (series_id, usage_date, group_id, revision)
);
create index superseded_row_restates on usage_export.superseded_row (series_id, usage_date) where restates;
comment on table usage_export.superseded_row is 'The history of slice_row: every revision that another one replaced';

create table usage_export.undated_snapshot (
  series_id    integer     not null references usage_export.series,
  snapshot_no  integer     not null check (snapshot_no > 0),
  -- The snapshot that holds the rows: this one, or an earlier one with the same numbers.
  content_no   integer     not null check (content_no between 1 and snapshot_no),
  fetch_no     bigint      not null,
  run_id       uuid,
  taken_at     timestamptz not null,
  content_hash text        not null,
  rows         integer     not null check (rows >= 0),
  primary key (series_id, snapshot_no)
);
comment on table usage_export.undated_snapshot is 'Answers without any date, which belong to no day';

create table usage_export.undated_row (
  series_id      integer not null,
  snapshot_no    integer not null,
  group_id       integer not null,
  {{metric "\n  ": $m numeric check ($m >= 0 and $m < 'infinity'),}}
  extra_metrics  jsonb,
  primary key (series_id, snapshot_no, group_id)
);
comment on table usage_export.undated_row is 'The rows of undated_snapshot';
