-- The schema that BI tools read, and which version of each of its views is there. The views are files in migrations/views.

create schema if not exists bi;
comment on schema bi is 'Usage of the speech service, for reading. Days are calendar days in UTC. Never add up across groupings or filters: each is the same usage counted again.';

create table usage_export.view_version (
  -- With its schema: the view or function that a file of migrations/views creates.
  name            text        primary key,
  -- SHA-256 of the file's text.
  hash            text        not null,
  -- The version of usage-export that created it.
  program_version text        not null,
  created_at      timestamptz not null default now()
);
comment on table usage_export.view_version is 'The version of each view and function';
