create or replace view bi.discovered_projects as
select p.project_id, p.name, p.list, p.first_seen_at, coalesce(p.last_seen_at, l.read_at) as last_seen_at,
  p.missing_since, p.vanished_at
from usage_export.discovered_project p
join usage_export.project_list l using (list);

comment on view bi.discovered_projects is 'The projects that the service has listed, also those that no entry includes: one row per project and key that lists it.';
comment on column bi.discovered_projects.name is 'Its newest name at the service';
comment on column bi.discovered_projects.list is 'The key that lists it, as env NAME or file PATH';
comment on column bi.discovered_projects.first_seen_at is 'When it was first and last listed';
comment on column bi.discovered_projects.last_seen_at is 'When it was first and last listed';
comment on column bi.discovered_projects.missing_since is 'Since when doubtful lists lack it; it is read as before';
comment on column bi.discovered_projects.vanished_at is 'When it was found gone: its numbers stay, no day is due any more';
