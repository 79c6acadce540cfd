create or replace view bi.discovered_projects as
select p.project_id, p.name, p.list, p.first_seen_at, coalesce(p.last_seen_at, l.read_at) as last_seen_at,
  p.missing_since, p.vanished_at
from usage_export.discovered_project p
join usage_export.project_list l using (list);

comment on view bi.discovered_projects is 'The projects that the service has listed, one row a project and key that lists it, also those that no entry includes.';
comment on column bi.discovered_projects.name is 'Its newest name at the service, which the name in the other views is made from';
comment on column bi.discovered_projects.list is 'The key that lists it, as env NAME or file PATH';
comment on column bi.discovered_projects.first_seen_at is 'When the list had it first, and last';
comment on column bi.discovered_projects.last_seen_at is 'When the list had it first, and last';
comment on column bi.discovered_projects.missing_since is 'Since when doubtful lists lack it, which lack more than half of the projects; it is read as before';
comment on column bi.discovered_projects.vanished_at is 'When it was found to be gone: its numbers stay, and its days are no longer due';
