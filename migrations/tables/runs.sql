-- Jobs, their runs, the workers that execute them, and the alerts about them.

create table usage_export.job (
  kind              text        not null check (kind in ('export', 'rotation')),
  name              text        not null,
  -- The newest moment of its schedule that a run took up, or that was skipped. Workers lock the row while they decide.
  scheduled_through timestamptz,
  paused_at         timestamptz,
  paused_why        text,
  paused_by         text,
  -- What was due while the job was paused is late from here on, not from its own moment.
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
                              check (status in ('running', 'ok', 'failed', 'stopped', 'skipped')),
  requests        integer     not null default 0,
  -- How many of its requests wait for workers or are with one; null if one process makes them all.
  requests_open   integer     check (requests_open >= 0),
  slices_planned  integer     not null default 0,
  slices_complete integer     not null default 0,
  slices_suspect  integer     not null default 0,
  slices_failed   integer     not null default 0,
  slices_stale    integer     not null default 0,
  slices_undated  integer     not null default 0,
  rows_changed    bigint      not null default 0,
  error           text
);
create index run_started on usage_export.run (started_at);
-- The newest run of each job is read the most, and runs are kept for years.
create index run_newest on usage_export.run (kind, job, started_at);
create index run_running on usage_export.run (kind, job) where status = 'running';
-- Replicas whose alarms ring together make one run.
create unique index run_scheduled on usage_export.run (kind, job, scheduled_for)
  where scheduled_for is not null;
comment on table usage_export.run is 'Executions of jobs';

-- Without a primary key and a foreign key, because each would cost more than the row itself. The narrowest columns come last, so that no
-- space is lost between them.
create table usage_export.run_request (
  run_id       uuid        not null,
  ended_at     timestamptz not null,
  series_id    integer     not null,
  -- The days it asked for; null if the service chose them.
  first_day    date,
  last_day     date,
  -- From its last call until the answer had been read; null if the service was not asked.
  took_ms      integer,
  rows_changed integer     not null,
  outcome      text        not null,
  error_code   text,
  -- Cut to 200 characters, because an outage fails all requests of a run.
  error        text
);
create index run_request_run on usage_export.run_request (run_id);
comment on table usage_export.run_request is 'The outcome of each usage request of the newest runs';

create table usage_export.queued_request (
  -- The series and the window: a request that several runs need is queued once.
  request_key text    primary key,
  run_id      uuid    not null,
  -- The queue job that makes it, together with others.
  chunk_id    uuid    not null,
  -- The order of the requests of a run.
  position    integer not null,
  request     jsonb   not null,
  -- Why its last attempt failed; null before that.
  error       text,
  error_code  text
);
create index queued_request_chunk on usage_export.queued_request (chunk_id);
comment on table usage_export.queued_request is 'The usage requests of queued runs';

create table usage_export.worker (
  worker_id         uuid        primary key,
  host              text        not null,
  pid               integer     not null,
  version           text        not null,
  started_at        timestamptz not null default clock_timestamp(),
  -- The end of its newest tick: a worker that hangs in one plans nothing.
  last_seen_at      timestamptz not null default clock_timestamp(),
  -- When it was told to stop; null while it runs, and for one that was killed.
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
  -- What the last notification said. No row means that none was sent, which is as good as well.
  state         text        not null check (state in ('wrong', 'well')),
  since         timestamptz not null default now(),
  -- Who sends the notification, and until when nobody else may: if the sender dies, another tries after that. Each change has
  -- another claim, so that a process that read the row before notices it.
  claim         uuid        not null,
  claimed_until timestamptz,
  primary key (subject)
);
comment on table usage_export.notice is 'The notifications that were sent about alerts';
