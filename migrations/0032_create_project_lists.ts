// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // A row is the list of projects that one key sees, as the service answered it last.
  await sql`
    create table usage_export.project_list (
      installation text        not null default 'default',
      -- Where the key is: "env NAME" or "file PATH".
      list         text        not null,
      -- When the newest readable list was read; null if none was.
      read_at      timestamptz,
      -- When a list last changed what is known of a project.
      changed_at   timestamptz,
      -- Why the newest attempt to read the list failed, and since when; null if it did not.
      error        text,
      failing_since timestamptz check ((failing_since is null) = (error is null)),
      primary key (installation, list)
    )
  `.execute(db);
  await sql`
    create table usage_export.discovered_project (
      installation  text        not null default 'default',
      list          text        not null,
      project_id    text        not null,
      -- The newest name at the service.
      name          text        not null,
      first_seen_at timestamptz not null,
      -- The newest list with the project, once a list lacks it; null while it is listed.
      last_seen_at  timestamptz,
      -- Since when it is missing from lists that are in doubt.
      missing_since timestamptz,
      -- When a list without it was believed.
      vanished_at   timestamptz check (vanished_at is null or missing_since is null),
      -- When its first days became due; null until its series are registered for the first time.
      made_due_at   timestamptz,
      primary key (installation, list, project_id),
      foreign key (installation, list) references usage_export.project_list
    )
  `.execute(db);
}
