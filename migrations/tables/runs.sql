-- Jobs, their runs, the workers that execute them, and the alerts about them.

-- pg-boss creates its tables in this schema. The schema is created under the lock of the migration, as several processes may migrate at once.
create schema usage_export_queue;

create table usage_export.job (
  kind              text        not null check (kind in ('export', 'rotation')),
  name              text        not null,
  -- The newest scheduled time for which a run was started. Workers lock the row while they plan.
  scheduled_through timestamptz,
  paused_at         timestamptz,
  paused_why        text,
  paused_by         text,
  -- A time of the schedule during a pause counts as late from the end of the pause on.
  resumed_at        timestamptz,
  created_at        timestamptz not null default now(),
  primary key (kind, name),
  check ((paused_at is null) = (paused_why is null) and (paused_at is null) = (paused_by is null))
);
comment on table usage_export.job is 'The jobs of the configuration';

create table usage_export.run (
  run_id          uuid        primary key,
  kind            text        not null check (kind in ('export', 'rotation')),
  job             text        not null,
  trigger         text        not null check (trigger in ('schedule', 'manual', 'catchup', 'backfill')),
  scheduled_for   timestamptz,
  started_at      timestamptz not null default now(),
  heartbeat_at    timestamptz not null default now(),
  finished_at     timestamptz,
  status          text        not null default 'running'
                              check (status in ('running', 'ok', 'failed', 'stopped')),
  -- How many of its projects have not ended; null if one process makes all requests.
  projects_open   integer     check (projects_open >= 0),
  projects_failed integer     not null default 0,
  -- Fetches with a higher number began after the run.
  fetch_no        bigint,
  error           text
);
create index run_started on usage_export.run (started_at);
-- This index finds the newest run of a job, as runs are kept for years.
create index run_newest on usage_export.run (kind, job, started_at);
create index run_running on usage_export.run (kind, job) where status = 'running';
-- If several workers plan the same scheduled time, only one makes the run.
create unique index run_scheduled on usage_export.run (kind, job, scheduled_for)
  where scheduled_for is not null;
comment on table usage_export.run is 'Executions of jobs';

create table usage_export.run_project (
  run_id          uuid        not null references usage_export.run on delete cascade,
  project_id      text        not null,
  -- Null while the project has not ended.
  finished_at     timestamptz,
  requests        integer     not null default 0,
  slices_planned  integer     not null,
  slices_complete integer     not null default 0,
  slices_suspect  integer     not null default 0,
  slices_failed   integer     not null default 0,
  slices_undated  integer     not null default 0,
  slices_stale    integer     not null default 0,
  rows_changed    bigint      not null default 0,
  -- The first error.
  error           text,
  primary key (run_id, project_id)
);
comment on table usage_export.run_project is 'What a run did for each of its projects';

create table usage_export.worker (
  worker_id         uuid        primary key,
  host              text        not null,
  pid               integer     not null,
  version           text        not null,
  started_at        timestamptz not null default clock_timestamp(),
  -- The end of its newest tick. A worker that hangs in a tick plans nothing.
  last_seen_at      timestamptz not null default clock_timestamp(),
  -- When it was told to stop; null while it runs, and if it was killed.
  stopped_at        timestamptz,
  -- Why it does not use the newest version of its configuration; null while it does.
  config_refused    text,
  config_refused_at timestamptz,
  check ((config_refused is null) = (config_refused_at is null))
);
comment on table usage_export.worker is 'The processes of `start`';

create table usage_export.notice (
  -- The name of the alert.
  subject       text        not null,
  -- What the last notification said. Without a row, none was sent, and the state counts as 'well'.
  state         text        not null check (state in ('wrong', 'well')),
  since         timestamptz not null default now(),
  -- Until when nobody but the process with this claim may send the notification: if it dies, another process sends it. Every change makes a new
  -- claim, so that a process that read the row before notices it.
  claim         uuid        not null,
  claimed_until timestamptz,
  primary key (subject)
);
comment on table usage_export.notice is 'The notifications that were sent about alerts';
