// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // What became of each usage request of the newest runs. Rows are only inserted, and deleted by run. Without a primary key and a foreign
  // key, because each would cost more than the row itself; the narrowest columns come last, so that no space is lost between them.
  await sql`
    create table usage_export.run_request (
      run_id       uuid        not null,
      ended_at     timestamptz not null,
      series_id    integer     not null,
      -- The days it asked for; null if the service chose them.
      first_day    date,
      last_day     date,
      -- From its last call until the answer had been read; null if the service was not asked.
      took_ms      integer,
      rows_changed integer     not null,
      outcome      text        not null,
      error_code   text,
      -- Cut to 200 characters, because an outage fails all requests of a run.
      error        text
    )
  `.execute(db);
  await sql`create index run_request_run on usage_export.run_request (run_id)`.execute(db);
}
