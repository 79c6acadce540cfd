-- The role that the program uses: it owns the database and may do nothing else on the server. Made with psql by the server's
-- superuser. Safe to repeat; a new password takes hold, and what the superuser made while the program used it as its role
-- becomes the program's.
\set ON_ERROR_STOP on
set client_min_messages = warning;
\getenv password PROGRAM_PASSWORD
select 'create role usage_exporter' where not exists (select from pg_catalog.pg_roles where rolname = 'usage_exporter') \gexec
alter role usage_exporter login nosuperuser nocreaterole nocreatedb noreplication nobypassrls password :'password';
-- The program may create no roles.
select 'create role usage_reader nologin' where not exists (select from pg_catalog.pg_roles where rolname = 'usage_reader') \gexec
begin;
alter database :"DBNAME" owner to usage_exporter;
select format('alter schema %I owner to usage_exporter', nspname)
from pg_catalog.pg_namespace where nspname in ('bi', 'usage_export', 'usage_export_queue') \gexec
select format('alter %s %I.%I owner to usage_exporter', case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end,
  nspname, relname)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = relnamespace
where nspname in ('bi', 'usage_export', 'usage_export_queue') and relkind in ('r', 'p', 'v', 'S')
  and relowner <> 'usage_exporter'::regrole
  -- A sequence of a column goes with its table.
  and not (relkind = 'S' and exists (
    select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')))
order by relkind = 'S' \gexec
select format('alter routine %I.%I(%s) owner to usage_exporter', nspname, proname, pg_catalog.pg_get_function_identity_arguments(p.oid))
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = pronamespace
where nspname in ('bi', 'usage_export', 'usage_export_queue') and proowner <> 'usage_exporter'::regrole \gexec
select format('alter type %I.%I owner to usage_exporter', nspname, typname)
from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = typnamespace
where nspname in ('bi', 'usage_export', 'usage_export_queue') and typtype in ('d', 'e') and typowner <> 'usage_exporter'::regrole \gexec
commit;
