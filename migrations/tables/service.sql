-- What is known of the service: who calls it, which dialect it has, and which projects a key sees.

create table usage_export.calling_process (
  process_id uuid        primary key,
  -- The process announces more slots here before it uses them.
  slots      integer     not null,
  -- A process that has not been seen for some seconds is gone, and stops calling before that.
  seen_at    timestamptz not null
);
comment on table usage_export.calling_process is 'The processes that call the service now, which share service.maxConcurrent and service.requestsPerSecond';

create table usage_export.call_pause (
  -- Where the key is found, such as "env PROD_KEY"; empty if all calls pause.
  key   text        primary key,
  until timestamptz not null
);
comment on table usage_export.call_pause is 'Until when no process calls with a key, because the service asked for that';

create table usage_export.service_dialect (
  -- The service's address, as configured.
  service text primary key,
  dialect text not null check (dialect in ('interface', '2026'))
);
comment on table usage_export.service_dialect is 'The dialect that a probe found, for all processes and runs';

create table usage_export.project_list (
  -- Where the key is: "env NAME" or "file PATH".
  list          text        not null,
  -- When the newest readable list was read; null if none was.
  read_at       timestamptz,
  -- When a list last added, renamed or lost a project.
  changed_at    timestamptz,
  -- Why the newest attempt to read the list failed, and since when all have failed; null if it did not.
  error         text,
  failing_since timestamptz check ((failing_since is null) = (error is null)),
  primary key (list)
);
comment on table usage_export.project_list is 'The list of projects that a key sees, as the service last sent it';

create table usage_export.discovered_project (
  list          text        not null,
  project_id    text        not null,
  -- The newest name at the service, and since when the project has it.
  name          text        not null,
  named_at      timestamptz not null,
  first_seen_at timestamptz not null,
  -- When the last list with the project was read; null while it is listed.
  last_seen_at  timestamptz,
  -- Since when it is missing from lists that are in doubt.
  missing_since timestamptz,
  -- When a list without it was believed.
  vanished_at   timestamptz check (vanished_at is null or missing_since is null),
  -- When its first days became due; null until its series are registered for the first time.
  made_due_at   timestamptz,
  primary key (list, project_id),
  foreign key (list) references usage_export.project_list
);
comment on table usage_export.discovered_project is 'The projects of project_list';

