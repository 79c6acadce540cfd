-- The schema that BI tools read. Its views are files in migrations/views.

create schema if not exists bi;
comment on schema bi is 'Usage of the speech service, for reading. Days are calendar days in UTC. Never add up across groupings or filters: each is the same usage counted again.';
