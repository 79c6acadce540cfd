-- The login that dashboards read with, made with psql by a superuser. Safe to repeat; a new password takes hold.
\set ON_ERROR_STOP on
set client_min_messages = warning;
\getenv password BI_PASSWORD
select 'create role bi_reader' where not exists (select from pg_catalog.pg_roles where rolname = 'bi_reader') \gexec
alter role bi_reader login password :'password';
alter role bi_reader set default_transaction_read_only = on;
-- A dashboard over too many days ends, before it keeps the exporter waiting.
alter role bi_reader set statement_timeout = '60s';
grant usage_reader to bi_reader;
