// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.series
      -- Which breakdown of the service the numbers are from.
      add column source text not null default 'usage' check (source in ('usage', 'billing')),
      drop constraint series_grouping_check,
      -- Billing is grouped by any of its dimensions at once, in alphabetical order, joined by commas.
      add constraint series_grouping_check check (
        case source
          when 'usage' then "grouping" in
            ('none', 'accessor', 'deployment', 'endpoint', 'feature_set', 'method', 'model', 'tags')
          else "grouping" = 'none'
            or string_to_array("grouping", ',') <@ array['accessor', 'deployment', 'line_item', 'tags']
        end
      ),
      drop constraint series_project_id_grouping_filter_key_key,
      add unique (source, project_id, "grouping", filter_key)
  `.execute(db);
  await sql`drop index usage_export.series_name`.execute(db);
  await sql`
    create unique index series_name on usage_export.series (source, project_id, "grouping", filter)
    where superseded_at is null
  `.execute(db);
  // Only rows of billing have it. Credits are negative.
  await sql`
    alter table usage_export.snapshot_row
      add column dollars numeric check (dollars > '-infinity' and dollars < 'infinity')
  `.execute(db);
  await sql`alter table usage_export.superseded_row add column dollars numeric`.execute(db);
}
