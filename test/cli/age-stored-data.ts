// Makes all stored data older by some days, as if no program had run for that time.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";

/** Days are first moved this far away, because a day can't be moved to one that another row still has. */
const FAR_DAYS = 100_000;

export async function ageStoredData(db: Database, days: number): Promise<void> {
  for (const table of ["slice", "snapshot_row", "superseded_row"]) {
    for (const moved of [days + FAR_DAYS, -FAR_DAYS]) {
      await sql`update ${sql.table(`usage_export.${table}`)} set usage_date = usage_date - ${sql.lit(moved)}`.execute(
        db,
      );
    }
  }
  // In hours, because a day in the session's time zone may be longer or shorter than 24 hours.
  const ago = sql`make_interval(hours => ${24 * days})`;
  await sql`
    update usage_export.slice
    set fetched_at = fetched_at - ${ago}, closed_at = closed_at - ${ago}, attempted_at = attempted_at - ${ago},
      suspect_since = suspect_since - ${ago}
  `.execute(db);
  await sql`
    update usage_export.snapshot_row
    set first_seen_at = first_seen_at - ${ago}, last_changed_at = last_changed_at - ${ago}
  `.execute(db);
  await sql`
    update usage_export.superseded_row
    set first_seen_at = first_seen_at - ${ago}, last_changed_at = last_changed_at - ${ago},
      superseded_at = superseded_at - ${ago}
  `.execute(db);
  await sql`
    update usage_export.run
    set started_at = started_at - ${ago}, finished_at = finished_at - ${ago}, scheduled_for = scheduled_for - ${ago}
  `.execute(db);
  await sql`update usage_export.undated_snapshot set taken_at = taken_at - ${ago}`.execute(db);
  await sql`
    update usage_export.job
    set scheduled_through = scheduled_through - ${ago}, resumed_at = resumed_at - ${ago}, created_at = created_at - ${ago}
  `.execute(db);
  await sql`
    update usage_export.worker
    set started_at = started_at - ${ago}, last_seen_at = last_seen_at - ${ago}, stopped_at = stopped_at - ${ago}
  `.execute(db);
  await sql`
    update usage_export.series
    set due_from = due_from - ${sql.lit(days)}, due_through = due_through - ${sql.lit(days)}, next_due_at = next_due_at - ${ago}
  `.execute(db);
}
