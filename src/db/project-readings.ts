// When the keys and balances of each project were last read, so that a run that has no time for all begins with the oldest.

import { sql } from "kysely";
import type { Database } from "./connection/database.ts";
import { inTransaction } from "./connection/transaction.ts";

/** The ids, those that were never read first, then the one read longest ago. */
export async function oldestFirst(db: Database, projectIds: readonly string[]): Promise<readonly string[]> {
  const { rows } = await sql<{ projectId: string }>`
    select wanted.project_id as "projectId"
    from unnest(${projectIds}::text[]) with ordinality as wanted (project_id, position)
    left join usage_export.project_reading r using (project_id)
    order by r.read_at nulls first, wanted.position
  `.execute(db);
  return rows.map(({ projectId }) => projectId);
}

/** Safe to repeat. */
export async function recordReadings(db: Database, projectIds: readonly string[]): Promise<void> {
  if (projectIds.length === 0) return;
  await inTransaction(db, (tx) =>
    sql`
      insert into usage_export.project_reading (project_id, read_at)
      select project_id, now() from unnest(${[...projectIds].sort()}::text[]) as read (project_id)
      on conflict (project_id) do update set read_at = excluded.read_at
    `.execute(tx),
  );
}
