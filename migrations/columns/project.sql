-- Comments on the columns of every view of a project.
comment on column :view.project_id is 'The service''s identifier of the project';
comment on column :view.project is 'The project''s name in the configuration';
