create or replace view bi.discovered_projects as
select p.project_id, p.name, p.list, p.first_seen_at, coalesce(p.last_seen_at, l.read_at) as last_seen_at,
  p.missing_since, p.vanished_at
from usage_export.discovered_project p
join usage_export.project_list l using (list);

comment on view bi.discovered_projects is 'The projects that the service has listed to the keys of discovering entries, one row a project and key, also those that no entry includes.';
comment on column bi.discovered_projects.project_id is 'The service''s identifier of the project';
comment on column bi.discovered_projects.name is 'Its newest name at the service; the views of usage show the name here, which is made from it';
comment on column bi.discovered_projects.list is 'Which key lists it: where the key is, as env NAME or file PATH';
comment on column bi.discovered_projects.first_seen_at is 'When it was listed first';
comment on column bi.discovered_projects.last_seen_at is 'When it was listed last';
comment on column bi.discovered_projects.missing_since is 'Since when it is missing from lists that are in doubt, as they lack more than half of the projects; it is read as before. NULL otherwise';
comment on column bi.discovered_projects.vanished_at is 'When it was found to be gone: its numbers stay, and its days are no longer due; NULL while it is listed';
